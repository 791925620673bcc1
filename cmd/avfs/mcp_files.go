package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentvfs/avfs/engine"
	"github.com/agentvfs/avfs/workspace"
)

type readArgs struct {
	inVault
	Path   string `json:"path" jsonschema:"the file to read; PATH@STATE reads it as it was at a checkpoint, before or after an exec (ID^ or ID), or at a time"`
	Offset int    `json:"offset,omitempty" jsonschema:"the first line to read, counted from 1"`
	Limit  int    `json:"limit,omitempty" jsonschema:"how many lines to read at most; 2000 by default"`
}

type listArgs struct {
	inVault
	Path  string `json:"path,omitempty" jsonschema:"the directory to list; by default the top"`
	Depth int    `json:"depth,omitempty" jsonschema:"how far to go down; 1, the default, lists the directory alone"`
}

type findArgs struct {
	inVault
	Path string   `json:"path,omitempty" jsonschema:"where to search; by default everywhere"`
	Name []string `json:"name,omitempty" jsonschema:"patterns for the name, with * ? and [a-z]; one of them has to fit"`
	Type string   `json:"type,omitempty" jsonschema:"f for files, d for directories, l for symbolic links"`
}

type grepArgs struct {
	inVault
	Pattern    string   `json:"pattern" jsonschema:"a regular expression (RE2)"`
	Path       string   `json:"path,omitempty" jsonschema:"the file or directory to search; by default everything"`
	Glob       []string `json:"glob,omitempty" jsonschema:"search only files with such names, such as *.go; with ! leave them out"`
	IgnoreCase bool     `json:"ignore_case,omitempty" jsonschema:"upper and lower case are the same"`
	Fixed      bool     `json:"fixed,omitempty" jsonschema:"the pattern is plain text"`
	Context    int      `json:"context,omitempty" jsonschema:"so many lines before and after each match"`
}

type writeArgs struct {
	inVault
	Path    string `json:"path" jsonschema:"the file to write"`
	Text    string `json:"text" jsonschema:"its whole new content"`
	Parents bool   `json:"parents,omitempty" jsonschema:"make missing directories"`
	Append  bool   `json:"append,omitempty" jsonschema:"add to the end instead of replacing the content"`
}

type editArgs struct {
	inVault
	Path       string `json:"path" jsonschema:"the file to edit"`
	Old        string `json:"old" jsonschema:"the text to replace, exactly as it is in the file, where it must be once"`
	New        string `json:"new" jsonschema:"what to put there"`
	ReplaceAll bool   `json:"replace_all,omitempty" jsonschema:"replace the text wherever it is"`
}

type importArgs struct {
	inVault
	Source    string `json:"source" jsonschema:"the absolute path of a directory or file on the host"`
	Dest      string `json:"dest,omitempty" jsonschema:"where it goes in the vault; by default the top"`
	Gitignore bool   `json:"gitignore,omitempty" jsonschema:"leave out what Git ignores there"`
	Update    bool   `json:"update,omitempty" jsonschema:"read only files of which size, time or mode differ from the vault's"`
}

func (s *mcpServer) addFileTools() {
	addHandler(s, mcpTool{"avfs_read", "Read a file", "Read a text file of the vault, or some lines of it. What is no text comes as base64.", "cat", hints{reads: true}}, s.read)
	addTool(s, mcpTool{"avfs_list", "List a directory", "List a directory of the vault, with depth also what is below it.", "ls", hints{reads: true}}, listLine, sayEntries)
	addTool(s, mcpTool{"avfs_find", "Find files", "Find files and directories by name and type.", "find", hints{reads: true}}, findLine,
		func(w io.Writer, _ findArgs, list []workspace.Entry) { sayPaths(w, list) })
	addTool(s, mcpTool{"avfs_grep", "Search in files", "Search the text files of the vault for a regular expression.", "grep", hints{reads: true}}, grepLine, sayMatches)
	addTool(s, mcpTool{"avfs_write", "Write a file", "Write a whole file, a new one or over an old one.", "write", hints{}}, writeLine,
		func(w io.Writer, _ writeArgs, res workspace.WriteResult) {
			fmt.Fprintf(w, "wrote %s to %s", size(res.Bytes), safe(res.Path))
		})
	addTool(s, mcpTool{"avfs_edit", "Edit a file", "Replace a text in a file by another. It fails, and changes nothing, where the text is not in the file or, without replace_all, more than once.", "edit", hints{}},
		editLine, func(w io.Writer, _ editArgs, res workspace.EditResult) {
			fmt.Fprintf(w, "%s: %d replaced, the first in line %d", safe(res.Path), res.Replaced, res.Line)
		})
	addTool(s, mcpTool{"avfs_import", "Import from the host", "Copy a directory or file of the host into the vault, over what is there.", "import", hints{idempotent: true, reachesOut: true}},
		importLine, func(w io.Writer, _ importArgs, res workspace.ImportResult) {
			fmt.Fprintf(w, "imported %d files and %d directories, %s", res.Files, res.Dirs, size(res.Bytes))
		})
}

func orTopPath(p string) string {
	if p == "" {
		return "/"
	}
	return p
}

func listLine(in listArgs) (mcpLine, error) {
	switch {
	case in.Depth < 0:
		return mcpLine{}, errArguments("depth is 1 or more")
	case in.Depth > 1:
		return mcpLine{args: []string{"tree", fmt.Sprintf("--depth=%d", in.Depth), "--", orTopPath(in.Path)}}, nil
	}
	return mcpLine{args: []string{"ls", "--", orTopPath(in.Path)}}, nil
}

func findLine(in findArgs) (mcpLine, error) {
	args := []string{"find"}
	for _, n := range in.Name {
		args = append(args, "--name="+n)
	}
	if in.Type != "" {
		args = append(args, "--type="+in.Type)
	}
	return mcpLine{args: append(args, "--", orTopPath(in.Path))}, nil
}

func grepLine(in grepArgs) (mcpLine, error) {
	args := []string{"grep", fmt.Sprintf("--context=%d", in.Context)}
	for _, g := range in.Glob {
		args = append(args, "--glob="+g)
	}
	args = withFlags(args, map[string]bool{"--ignore-case": in.IgnoreCase, "--fixed": in.Fixed})
	return mcpLine{args: append(args, "--", in.Pattern, orTopPath(in.Path))}, nil
}

// withFlags adds the flags that are set. Their order means nothing.
func withFlags(args []string, flags map[string]bool) []string {
	for name, set := range flags {
		if set {
			args = append(args, name)
		}
	}
	return args
}

func writeLine(in writeArgs) (mcpLine, error) {
	args := withFlags([]string{"write"}, map[string]bool{"--parents": in.Parents, "--append": in.Append})
	return mcpLine{args: append(args, "--", in.Path), stdin: in.Text}, nil
}

func editLine(in editArgs) (mcpLine, error) {
	args := withFlags([]string{"edit", "--old=" + in.Old, "--new=" + in.New}, map[string]bool{"--all": in.ReplaceAll})
	return mcpLine{args: append(args, "--", in.Path)}, nil
}

func importLine(in importArgs) (mcpLine, error) {
	args := withFlags([]string{"import"}, map[string]bool{"--gitignore": in.Gitignore, "--update": in.Update})
	return mcpLine{args: append(args, "--", in.Source, orTopPath(in.Dest))}, nil
}

// shownEntries is how many lines a list of paths has for a model.
const shownEntries = 500

func sayEntries(w io.Writer, in listArgs, list []workspace.Entry) {
	if in.Depth <= 1 {
		list = list[:min(len(list), shownEntries)]
		longList(w, list, false)
		sayMore(w, len(list), shownEntries, "list a directory below")
		return
	}
	sayPaths(w, list)
}

func sayPaths(w io.Writer, list []workspace.Entry) {
	for _, e := range list[:min(len(list), shownEntries)] {
		end := ""
		if e.Type == "dir" && e.Path != "/" {
			end = "/"
		}
		fmt.Fprintf(w, "%s%s\n", safe(e.Path), end)
	}
	if len(list) == 0 {
		fmt.Fprintln(w, "nothing")
	}
	sayMore(w, len(list), shownEntries, "ask for less")
}

// sayMore says how much of a list is not shown, and what to do about it.
func sayMore(w io.Writer, total, shown int, advice string) {
	if total > shown {
		fmt.Fprintf(w, "[%d more: %s]\n", total-shown, advice)
	}
}

func sayMatches(w io.Writer, in grepArgs, found []workspace.GrepMatch) {
	if len(found) == 0 {
		fmt.Fprintln(w, "no match")
		return
	}
	grepLines(w, found[:min(len(found), shownEntries)], in.Context > 0, false)
	sayMore(w, len(found), shownEntries, `narrow the search with "path", "glob" or a stricter pattern`)
}

// Bounds of what one call reads.
const (
	defaultReadLines = 2000
	maxReadBytes     = 32 << 10
)

// readDoc is a file, or a part of one. What tells of a part is there only then.
type readDoc struct {
	content
	FirstLine int  `json:"first_line,omitempty"`
	Lines     int  `json:"lines,omitempty"`
	More      bool `json:"more,omitempty"` // there is more behind it
	// Omitted says how many bytes of a line are left out that is too long. Lines does
	// not count it.
	Omitted map[string]int `json:"omitted,omitempty"`
}

// read answers avfs_read. It reads no more of the file than it needs.
func (s *mcpServer) read(ctx context.Context, _ *mcp.CallToolRequest, in readArgs) (answer, error) {
	if in.Offset < 0 || in.Limit < 0 {
		return answer{}, errArguments("offset and limit are 1 or more")
	}
	win := &lineWindow{first: max(in.Offset, 1), most: in.Limit}
	if win.most == 0 {
		win.most = defaultReadLines
	}
	if err := s.readInto(ctx, in.inVault, in.Path, win); err != nil {
		return answer{}, err
	}
	doc := readDoc{content: newContent(in.Path, win.text())}
	if win.first > 1 || win.more || win.left > 0 {
		doc.FirstLine, doc.Lines, doc.More = win.first, win.lines(), win.more
	}
	if win.left > 0 {
		member := "text"
		if doc.Base64 != nil {
			member = "base64"
		}
		doc.Omitted = map[string]int{member: win.left}
	}
	b, err := json.Marshal(doc)
	return answer{doc: b, text: doc.forModel()}, err
}

// readInto writes a file to w until that has enough.
func (s *mcpServer) readInto(ctx context.Context, in inVault, file string, w io.Writer) error {
	req := workspace.PathRequest{Paths: []workspace.Path{workspace.Path(file)}, Past: true}
	_, err := workspace.CallVault(ctx, s.workspace, s.or(in.Vault), workspace.OpRead, func(v string) workspace.PathRequest {
		req.Vault = v
		return req
	}, workspace.Streams{Out: w})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// forModel is what a model is told of a file: its lines with their numbers.
func (d *readDoc) forModel() string {
	number := max(d.FirstLine, 1)
	if d.Base64 != nil {
		text := fmt.Sprintf("%s is no text; its content is in base64: %s", safe(d.Path), *d.Base64)
		return text + d.saysCut(d.Omitted["base64"], number)
	}
	var b strings.Builder
	for line := range strings.Lines(*d.Text) {
		fmt.Fprintf(&b, "%6d\t%s", number, line)
		number++
	}
	b.WriteString(d.saysCut(d.Omitted["text"], number-1))
	switch {
	case b.Len() == 0 && d.FirstLine > 1:
		fmt.Fprintf(&b, "[the file has no line %d]", d.FirstLine)
	case b.Len() == 0:
		b.WriteString("[the file is empty]")
	case d.More:
		fmt.Fprintf(&b, "\n[there is more: go on with offset %d]", number)
	}
	return b.String()
}

// saysCut says that so many bytes of a line are left out, and how to read them.
func (d *readDoc) saysCut(left, line int) string {
	if left == 0 {
		return ""
	}
	return fmt.Sprintf("\n[line %d is too long: its last %d bytes are left out; avfs_exec reads them: sed -n %dp FILE | tail -c %d | head -c %d]",
		line, left, line, left+1, maxReadBytes)
}

// errEnough says that a window needs no more.
var errEnough = errors.New("enough")

// lineWindow keeps some lines of what is written to it: from the line first on, at most
// so many, and no more than maxReadBytes. A line that alone is longer is cut.
type lineWindow struct {
	first, most int
	seen        int // lines before the window that have ended
	kept        []byte
	ended       int // lines in it that have ended
	left        int // bytes of the cut line that are not kept, without its end
	more        bool
}

// Write implements io.Writer.
func (l *lineWindow) Write(p []byte) (int, error) {
	n := len(p)
	for l.seen < l.first-1 {
		at := bytes.IndexByte(p, '\n')
		if at < 0 {
			return n, nil
		}
		l.seen++
		p = p[at+1:]
	}
	for len(p) > 0 {
		full := len(l.kept) > maxReadBytes
		if l.ended == l.most || full && l.ended > 0 {
			l.more = true
			return 0, errEnough
		}
		line, rest, ends := bytes.Cut(p, []byte("\n"))
		switch {
		case full: // in the first line, of which the rest is counted
			l.left += len(line)
		case ends:
			l.kept = append(l.kept, p[:len(line)+1]...)
		default:
			l.kept = append(l.kept, line...)
		}
		if ends {
			l.ended++
		}
		p = rest
	}
	return n, nil
}

// text is what was kept: whole lines, or a part of one that alone is too long.
func (l *lineWindow) text() []byte {
	if len(l.kept) <= maxReadBytes {
		return l.kept
	}
	cut := l.kept[:maxReadBytes]
	if at := bytes.LastIndexByte(cut, '\n'); at >= 0 {
		l.more, l.kept = true, cut[:at+1]
		return l.kept
	}
	for i := range utf8.UTFMax { // not within a character
		if whole := cut[:maxReadBytes-i]; utf8.Valid(whole) {
			cut = whole
			break
		}
	}
	l.left += len(bytes.TrimSuffix(l.kept[len(cut):], []byte("\n")))
	l.kept = cut
	return l.kept
}

// lines is how many lines were kept, not counting one that is cut.
func (l *lineWindow) lines() int {
	n := bytes.Count(l.kept, []byte("\n"))
	if len(l.kept) > 0 && l.kept[len(l.kept)-1] != '\n' && l.left == 0 {
		n++
	}
	return n
}

// maxResource is how large a file may be that is read as a resource.
const maxResource = 4 << 20

// addResources offers the files of vaults by their URIs.
func (s *mcpServer) addResources() {
	s.AddResourceTemplate(&mcp.ResourceTemplate{
		Name: "file", Title: "A file of a vault", URITemplate: "avfs://{vault}/{+path}", Description: "The content of a file, by the vault and the path.",
	}, func(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		u, err := url.Parse(req.Params.URI)
		if err != nil || u.Host == "" || strings.Trim(u.Path, "/") == "" {
			return nil, mcp.ResourceNotFoundError(req.Params.URI)
		}
		ctx, done := s.begin(ctx, req.Session.ID())
		defer done()
		var b bytes.Buffer
		err = s.readInto(ctx, inVault{u.Host}, path.Clean(u.Path), &capped{&b, maxResource})
		switch kind := engine.KindOf(err); {
		case kind == engine.NotFound || kind == engine.VaultNotFound:
			return nil, mcp.ResourceNotFoundError(req.Params.URI)
		case err != nil:
			return nil, err
		}
		c := &mcp.ResourceContents{URI: req.Params.URI}
		if utf8.Valid(b.Bytes()) {
			c.MIMEType, c.Text = "text/plain", b.String()
		} else {
			c.MIMEType, c.Blob = "application/octet-stream", b.Bytes()
		}
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{c}}, nil
	})
}

// capped is a buffer with an end.
type capped struct {
	b    *bytes.Buffer
	most int
}

// Write implements io.Writer.
func (c *capped) Write(p []byte) (int, error) {
	if c.b.Len()+len(p) > c.most {
		return 0, &engine.Error{Kind: engine.FileTooLarge, Op: "read", Err: fmt.Errorf("has more than %d bytes; read it in parts with avfs_read", c.most)}
	}
	return c.b.Write(p)
}
