package main

import (
	"fmt"
	"io"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/transfer"
	"github.com/agentvfs/avfs/workspace"
)

type importCmd struct {
	Source    string         `arg:"" help:"Directory or file on the host."`
	Dest      workspace.Path `arg:"" optional:"" default:"/" help:"Where it goes in the vault."`
	Tar       bool           `xor:"kind" help:"SOURCE is a tar archive, which gzip, zstd, bzip2 or xz may have compressed; - is standard input."`
	Git       bool           `xor:"kind" help:"SOURCE is a Git repository, or REPO@REVISION: take the tree of that commit, by default of HEAD."`
	Gitignore bool           `xor:"kind" help:"Leave out what Git ignores there."`
	Update    bool           `help:"Read only files of which size, time or mode differ from the vault's."`
}

func (c *importCmd) run(a *app) error {
	switch {
	case (c.Tar || c.Git) && c.Update:
		return usageError("--update is for a directory")
	case c.Tar:
		in, err := a.openArchive(c.Source)
		if err != nil {
			return err
		}
		return a.importArchive(c.Source, c.Dest, in)
	case c.Git:
		if _, err := a.hostPath(c.Source); err != nil {
			return err
		}
		in, err := openGit(a.ctx, c.Source)
		if err != nil {
			return err
		}
		return a.importArchive(c.Source, c.Dest, in)
	}
	src, err := a.hostPath(c.Source)
	if err != nil {
		return err
	}
	req := workspace.ImportRequest{Source: workspace.Path(src), Dest: c.Dest, Update: c.Update}
	if c.Gitignore {
		if req.Exclude, err = ignoredBelow(a.ctx, src); err != nil {
			return err
		}
	}
	started := time.Now()
	progress, done := a.progress("importing")
	res, err := call(a, workspace.OpImport, func(v string) workspace.ImportRequest { req.Vault = v; return req }, workspace.Streams{Progress: progress})
	done()
	if err != nil {
		return err
	}
	return a.print(res, func(w io.Writer) { describeTransfer(w, "imported", res.Report, time.Since(started)) })
}

type exportCmd struct {
	Source     workspace.Path `arg:"" help:"Path in the vault; with --patch a state."`
	Dest       string         `arg:"" optional:"" help:"Directory or file on the host; with --patch a second state."`
	File       string         `arg:"" optional:"" help:"With --patch the file on the host, which comes last also where states are left out."`
	Checkpoint string         `help:"Export the state of this checkpoint, or another state." placeholder:"STATE"`
	Since      string         `name:"changed-since" help:"Export only what is not as it was in this state; without a path in the vault, of all of it." placeholder:"STATE"`
	Overwrite  bool           `help:"Replace files that exist."`
	Tar        bool           `help:"DEST is a tar archive to write; - is standard output."`
	Patch      bool           `short:"p" help:"Write what 'diff --patch' prints of the states, base and now where they are left out, to a file; - is standard output."`
	Compress   string         `help:"Compress the archive with gzip, zstd or none; by default as its name says." placeholder:"HOW"`
}

func (c *exportCmd) run(a *app) error {
	switch {
	case c.Patch:
		return c.patch(a)
	case c.File != "":
		return usageError("three arguments are for --patch")
	}
	if c.Dest == "" {
		if c.Since == "" {
			return usageError("expected a path in the vault and one on the host")
		}
		c.Source, c.Dest = "/", string(c.Source)
	}
	req := workspace.ExportRequest{Source: c.Source, Checkpoint: c.Checkpoint, Since: c.Since, Overwrite: c.Overwrite}
	switch {
	case c.Tar && c.Since != "":
		return usageError("--tar and --changed-since exclude each other")
	case c.Tar:
		return a.exportArchive(req, c.Dest, c.Compress)
	case c.Compress != "":
		return usageError("--compress belongs to --tar")
	}
	dest, err := a.hostPath(c.Dest)
	if err != nil {
		return err
	}
	started := time.Now()
	progress, done := a.progress("exporting")
	req.Dest = workspace.Path(dest)
	res, err := call(a, workspace.OpExport, func(v string) workspace.ExportRequest { req.Vault = v; return req }, workspace.Streams{Progress: progress})
	done()
	if err != nil {
		return err
	}
	return a.print(res, func(w io.Writer) { describeTransfer(w, "exported", res, time.Since(started)) })
}

// patch writes a patch from one state to another.
func (c *exportCmd) patch(a *app) error {
	if c.Tar || c.Compress != "" || c.Since != "" || c.Checkpoint != "" {
		return usageError("--patch stands with --overwrite and two states, and no other flag")
	}
	args := []string{string(c.Source)}
	for _, arg := range []string{c.Dest, c.File} {
		if arg != "" {
			args = append(args, arg)
		}
	}
	name, states := args[len(args)-1], args[:len(args)-1]
	req := workspace.DiffRequest{From: "base", Text: workspace.TextGit}
	if len(states) > 0 {
		req.From = states[0]
	}
	if len(states) > 1 {
		req.To = states[1]
	}
	if name == stdStream {
		if a.flags.JSON {
			return usageError("a patch goes to standard output, which is --json's: avfs diff --patch --json prints both")
		}
		_, err := a.writeDiff(req, a.stdout)
		return err
	}
	var rep transfer.Report
	err := a.writeHost(name, c.Overwrite, func(w io.Writer) error {
		res, err := a.writeDiff(req, &counted{w, &rep.Bytes})
		rep.Files, rep.SkippedTotal = int64(len(res.Files)), int64(len(res.LeftOut))
		for _, l := range res.LeftOut[:min(len(res.LeftOut), transfer.MaxSkips)] {
			rep.Skipped = append(rep.Skipped, transfer.Skip{Path: l.Path, PathB64: l.PathB64, Kind: engine.Unsupported, Message: l.What, Note: true})
		}
		return err
	})
	if err != nil {
		return err
	}
	return a.print(rep, func(w io.Writer) { fmt.Fprintf(w, "exported a patch of %d files, %s\n", rep.Files, size(rep.Bytes)) })
}

// counted counts the bytes that are written.
type counted struct {
	w     io.Writer
	bytes *int64
}

// Write implements io.Writer.
func (c *counted) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	*c.bytes += int64(n)
	return n, err
}

func describeTransfer(w io.Writer, verb string, r transfer.Report, took time.Duration) {
	fmt.Fprintf(w, "%s %d files and %d directories, %s, in %s\n", verb, r.Files, r.Dirs, size(r.Bytes), took.Round(time.Millisecond))
	if r.Unchanged > 0 {
		fmt.Fprintf(w, "  %d of the files had not changed\n", r.Unchanged)
	}
	if r.Symlinks+r.Others > 0 {
		fmt.Fprintf(w, "  with %d symbolic links and %d other entries\n", r.Symlinks, r.Others)
	}
	for i, s := range r.Skipped {
		if i == shownChanges {
			fmt.Fprintf(w, "\u2026 and %d more\n", r.SkippedTotal-shownChanges)
			break
		}
		fmt.Fprintf(w, "  left out %s: %s\n", safe(s.Path), s.Message)
	}
}

// progress shows a bar where a person watches standard error; elsewhere it gives
// nothing to call, which spares the counting. done takes the bar away.
func (a *app) progress(what string) (fn func(workspace.Progress), done func()) {
	if a.watch != nil {
		return a.watch, func() {}
	}
	if a.flags.Quiet || !isTerminal(a.stderr) {
		return nil, func() {}
	}
	bar := progressbar.NewOptions64(-1,
		progressbar.OptionSetWriter(a.stderr), progressbar.OptionSetDescription(what), progressbar.OptionShowBytes(true),
		progressbar.OptionClearOnFinish(), progressbar.OptionThrottle(65*time.Millisecond), progressbar.OptionSetWidth(30),
	)
	fn = func(p workspace.Progress) {
		if p.TotalBytes > 0 {
			bar.ChangeMax64(p.TotalBytes)
		}
		bar.Describe(fmt.Sprintf("%s %d files", what, p.Files))
		_ = bar.Set64(p.Bytes) // a bar that cannot be drawn is no failure
	}
	return fn, func() { _ = bar.Finish() } // likewise
}
