package transfer

import (
	"archive/tar"
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/agentvfs/avfs/engine"
)

// git runs the git program in a directory and returns what it printed. That it is
// missing is Unsupported.
func git(ctx context.Context, dir string, args ...string) ([]byte, error) {
	cmd, err := gitCommand(ctx, dir, args...)
	if err != nil {
		return nil, err
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, gitError(ctx, args[0], err, stderr.String())
	}
	return out, nil
}

func gitCommand(ctx context.Context, dir string, args ...string) (*exec.Cmd, error) {
	program, err := exec.LookPath("git")
	if err != nil {
		return nil, &engine.Error{Kind: engine.Unsupported, Op: "git", Err: message("the git program is needed, and is not installed")}
	}
	return exec.CommandContext(ctx, program, append([]string{"-C", dir}, args...)...), nil
}

// gitError says in git's own words what is wrong.
func gitError(ctx context.Context, what string, err error, stderr string) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	said := strings.TrimPrefix(strings.TrimSpace(stderr), "fatal: ")
	if said == "" {
		said = err.Error()
	}
	return &engine.Error{Kind: engine.Invalid, Op: "git " + what, Err: message(said)}
}

// GitTar writes the tree of a revision of the Git repository at dir to w, as a tar
// archive: the content of the commit itself, byte for byte, whatever attributes would
// make of it in a work tree. All times are the commit's. A submodule becomes an empty
// directory. An empty revision is HEAD.
func GitTar(ctx context.Context, dir, rev string, w io.Writer) error {
	if rev == "" {
		rev = "HEAD"
	}
	if _, err := git(ctx, dir, "rev-parse", "--git-dir"); err != nil {
		return err
	}
	id, err := git(ctx, dir, "rev-parse", "--verify", "--quiet", "--end-of-options", rev+"^{tree}")
	if err != nil {
		if engine.KindOf(err) == engine.Invalid {
			err = &engine.Error{Kind: engine.NotFound, Op: "git", Path: rev, Err: message("there is no such revision")}
		}
		return err
	}
	at := time.Now()
	if text, err := git(ctx, dir, "show", "-s", "--format=%ct", "--end-of-options", rev+"^{commit}"); err == nil { // else it names a tree
		if seconds, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil {
			at = time.Unix(seconds, 0)
		}
	}
	list, err := git(ctx, dir, "ls-tree", "-r", "-t", "-z", "--full-tree", strings.TrimSpace(string(id)))
	if err != nil {
		return err
	}
	return writeGitTree(ctx, dir, list, at, w)
}

// writeGitTree writes the entries that ls-tree has listed.
func writeGitTree(ctx context.Context, dir string, list []byte, at time.Time, w io.Writer) (err error) {
	blobs, err := newGitBlobs(ctx, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, blobs.close()) }()
	t := tar.NewWriter(w)
	for record := range bytes.SplitSeq(bytes.TrimSuffix(list, []byte{0}), []byte{0}) {
		if len(record) == 0 {
			continue
		}
		about, name, ok := strings.Cut(string(record), "\t")
		f := strings.Fields(about)
		if !ok || len(f) != 3 {
			return &engine.Error{Kind: engine.Internal, Op: "git ls-tree", Err: fmt.Errorf("it says %q", record)}
		}
		h := &tar.Header{Name: name, ModTime: at, Format: tar.FormatPAX, Uid: max(os.Getuid(), 0), Gid: max(os.Getgid(), 0)}
		if err := blobs.entry(t, h, f[0], f[2]); err != nil {
			return err
		}
	}
	return t.Close()
}

// gitBlobs is a running git cat-file --batch.
type gitBlobs struct {
	ctx    context.Context // of the transfer
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	stderr bytes.Buffer
}

func newGitBlobs(ctx context.Context, dir string) (*gitBlobs, error) {
	cmd, err := gitCommand(ctx, dir, "cat-file", "--batch")
	if err != nil {
		return nil, err
	}
	b := &gitBlobs{ctx: ctx, cmd: cmd}
	cmd.Stderr = &b.stderr
	if b.in, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	b.out = bufio.NewReaderSize(out, 64<<10)
	return b, cmd.Start()
}

// close ends the program. It was asked for nothing more, so its own end says nothing
// new.
func (b *gitBlobs) close() error {
	err := b.in.Close()
	_, _ = io.Copy(io.Discard, b.out)
	if werr := b.cmd.Wait(); werr != nil && b.ctx.Err() == nil {
		err = errors.Join(err, gitError(b.ctx, "cat-file", werr, b.stderr.String()))
	}
	return err
}

// entry writes one entry of the mode that git has for it.
func (b *gitBlobs) entry(t *tar.Writer, h *tar.Header, mode, id string) error {
	switch mode {
	case "040000", "160000":
		h.Typeflag, h.Mode, h.Name = tar.TypeDir, 0o755, h.Name+"/"
		return t.WriteHeader(h)
	case "120000":
		var target strings.Builder
		if err := b.blob(id, func(int64) (io.Writer, error) { return &target, nil }); err != nil {
			return err
		}
		h.Typeflag, h.Mode, h.Linkname = tar.TypeSymlink, 0o777, target.String()
		return t.WriteHeader(h)
	}
	h.Typeflag, h.Mode = tar.TypeReg, 0o644
	if mode == "100755" {
		h.Mode = 0o755
	}
	return b.blob(id, func(size int64) (io.Writer, error) {
		h.Size = size
		return t, t.WriteHeader(h)
	})
}

// blob writes the content of an object to the writer that to gives for its size.
func (b *gitBlobs) blob(id string, to func(size int64) (io.Writer, error)) error {
	if _, err := io.WriteString(b.in, id+"\n"); err != nil {
		return gitError(b.ctx, "cat-file", err, b.stderr.String())
	}
	line, err := b.out.ReadString('\n')
	if err != nil {
		return gitError(b.ctx, "cat-file", err, b.stderr.String())
	}
	f := strings.Fields(line)
	if len(f) != 3 {
		return &engine.Error{Kind: engine.Corrupt, Op: "git cat-file", Path: id, Err: fmt.Errorf("the repository lacks the object: %s", strings.TrimSpace(line))}
	}
	size, err := strconv.ParseInt(f[2], 10, 64)
	if err != nil {
		return err
	}
	w, err := to(size)
	if err != nil {
		return err
	}
	if _, err := io.CopyN(w, b.out, size); err != nil {
		return err
	}
	_, err = b.out.Discard(1) // the line break behind it
	return err
}

// GitIgnored lists what Git ignores below the directory dir, by .gitignore files on
// every level, .git/info/exclude and the user's own rules: paths relative to dir, a
// directory for all that is below it. What is tracked is never ignored. The directory
// need not be in a work tree.
func GitIgnored(ctx context.Context, dir string) (paths []string, err error) {
	args := []string{"ls-files", "--others", "--ignored", "--exclude-standard", "--directory", "-z"}
	inside, err := git(ctx, dir, "rev-parse", "--is-inside-work-tree")
	if engine.KindOf(err) == engine.Unsupported || ctx.Err() != nil {
		return nil, err
	}
	if err != nil || strings.TrimSpace(string(inside)) != "true" {
		temp, err := os.MkdirTemp("", "avfs-git-")
		if err != nil {
			return nil, err
		}
		defer func() { _ = os.RemoveAll(temp) }() // it holds nothing of anybody's
		if _, err := git(ctx, temp, "init", "-q", "--bare"); err != nil {
			return nil, err
		}
		args = append([]string{"--git-dir=" + temp, "--work-tree=" + dir}, args...)
	}
	out, err := git(ctx, dir, args...)
	if err != nil {
		return nil, err
	}
	for p := range strings.SplitSeq(string(out), "\x00") {
		if p = strings.TrimSuffix(p, "/"); p != "" {
			paths = append(paths, p)
		}
	}
	return paths, nil
}
