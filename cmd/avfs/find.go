package main

import (
	"encoding/base64"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agentvfs/avfs/workspace"
)

// findCmd has the names of find's options. findStyle lets them begin with one dash,
// as they do there.
type findCmd struct {
	Paths    []workspace.Path `arg:"" optional:"" name:"path" help:"Where to search; by default everywhere."`
	Name     []string         `help:"The name is like this pattern, with * ? and [a-z]; one of several." placeholder:"GLOB" sep:"none"`
	Iname    []string         `help:"The same, and upper and lower case are the same." placeholder:"GLOB" sep:"none"`
	Type     []string         `help:"One of f (file), d (directory), l (symbolic link), p, s, b and c." placeholder:"TYPE"`
	Size     []string         `help:"Files of more than N bytes (+N), less (-N) or exactly so many (N), with k, M or G." placeholder:"[+-]N" sep:"none"`
	Mtime    []string         `help:"Modified more than N days ago (+N) or less (-N); also 90m, 12h." placeholder:"+-N" sep:"none"`
	Newer    workspace.Path   `help:"Modified later than this path of the vault." placeholder:"PATH"`
	Newermt  string           `help:"Modified later than this time." placeholder:"TIME"`
	Tag      []string         `help:"Has this tag; all of several." placeholder:"TAG" sep:"none"`
	Meta     []string         `help:"Has this note, with any value or this one (see: avfs meta); all of several." placeholder:"KEY[=VALUE]" sep:"none"`
	Maxdepth int              `help:"Go down at most so far; 0 is the paths themselves." default:"-1" placeholder:"N"`
	Mindepth int              `help:"Leave out what is less far down." placeholder:"N"`
	Print0   bool             `name:"print0" short:"0" help:"End each path with a NUL instead of a line break, and print its exact bytes."`
}

// findFlags are the options of find that findStyle knows.
var findFlags = [...]string{"name", "iname", "type", "size", "mtime", "newer", "newermt", "tag", "meta", "maxdepth", "mindepth", "print0"}

// findStyle turns -name and the like into --name, and joins a value that begins
// with a dash to its option, where the command is find.
func findStyle(args []string) []string {
	at := slices.Index(args, "find")
	if at < 0 || len(needed(args)) != 1 || needed(args)[0].name != "find" {
		return args
	}
	out := slices.Clone(args[:at+1])
	rest := args[at+1:]
	for i := 0; i < len(rest); i++ {
		name := strings.TrimLeft(rest[i], "-")
		dashes := len(rest[i]) - len(name)
		switch {
		case rest[i] == "--":
			return append(out, rest[i:]...)
		case dashes == 0 || dashes > 2 || !slices.Contains(findFlags[:], name):
			out = append(out, rest[i])
		case name != "print0" && i+1 < len(rest):
			out = append(out, "--"+name+"="+rest[i+1])
			i++
		default:
			out = append(out, "--"+name)
		}
	}
	return out
}

func (c *findCmd) run(a *app) error {
	req, err := c.request(time.Now())
	if err != nil {
		return err
	}
	list, err := call(a, workspace.OpFind, func(v string) workspace.FindRequest { req.Vault = v; return req }, workspace.Streams{})
	if err != nil {
		return err
	}
	return a.print(list, func(w io.Writer) {
		for _, e := range list {
			if c.Print0 {
				fmt.Fprint(w, exact(e.Path, e.PathB64), "\x00")
			} else {
				fmt.Fprintln(w, safe(e.Path))
			}
		}
	})
}

// exact is a path byte for byte, of the two forms that a result has.
func exact(text, b64 string) string {
	if b, err := base64.StdEncoding.DecodeString(b64); err == nil && b64 != "" {
		return string(b)
	}
	return text
}

func (c *findCmd) request(now time.Time) (req workspace.FindRequest, err error) {
	req = workspace.FindRequest{Past: true, Paths: orTop(c.Paths), Newer: c.Newer, Tags: c.Tag, Meta: c.Meta, MinDepth: c.Mindepth}
	if len(c.Name) > 0 && len(c.Iname) > 0 {
		return req, usageError("--name and --iname exclude each other")
	}
	req.Names, req.FoldCase = append(c.Name, c.Iname...), len(c.Iname) > 0
	if c.Maxdepth < -1 || c.Mindepth < 0 {
		return req, usageError("a depth is 0 or more")
	}
	if c.Maxdepth >= 0 {
		req.MaxDepth = &c.Maxdepth
	}
	for _, t := range c.Type {
		name, ok := findTypes[t]
		if !ok {
			return req, usageError("a type is one of f, d, l, p, s, b and c, not %q", t)
		}
		req.Types = append(req.Types, name)
	}
	for _, s := range c.Size {
		if err := sizeRange(&req, s); err != nil {
			return req, err
		}
	}
	for _, s := range c.Mtime {
		if err := timeRange(&req, s, now); err != nil {
			return req, err
		}
	}
	if c.Newermt != "" {
		at, err := parseTime(c.Newermt, now)
		if err != nil {
			return req, err
		}
		req.After = later(req.After, at)
	}
	return req, nil
}

var findTypes = map[string]string{
	"f": "file", "d": "dir", "l": "symlink", "p": "fifo", "s": "socket", "b": "block", "c": "char",
}

// sizeRange adds a condition such as +10M.
func sizeRange(req *workspace.FindRequest, text string) error {
	sign, digits := splitSign(text)
	unit := int64(1)
	if n := len(digits); n > 0 {
		if at := strings.IndexByte("ckMGT", digits[n-1]); at >= 0 {
			unit, digits = int64(1)<<(10*at), digits[:n-1]
		}
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n < 0 || n > math.MaxInt64/unit {
		return usageError("a size is such as +10M, -1k or 100, not %q", text)
	}
	n *= unit
	least, most := n, n
	switch sign {
	case '+':
		least, most = n+1, math.MaxInt64
	case '-':
		least, most = 0, n-1
	}
	if req.MinSize == nil || least > *req.MinSize {
		req.MinSize = &least
	}
	if req.MaxSize == nil || most < *req.MaxSize {
		req.MaxSize = &most
	}
	return nil
}

// timeRange adds a condition such as -7 (days) or +12h.
func timeRange(req *workspace.FindRequest, text string, now time.Time) error {
	sign, digits := splitSign(text)
	age, err := parseAge(digits)
	if err != nil || sign == 0 {
		return usageError("--mtime takes + or - and a number of days or a duration, such as -7 or +12h, not %q", text)
	}
	at := now.Add(-age)
	if sign == '-' {
		req.After = later(req.After, at)
	} else if req.Before == nil || at.Before(*req.Before) {
		req.Before = &at
	}
	return nil
}

// parseAge reads a duration; a bare number, or one with d, is days.
func parseAge(text string) (time.Duration, error) {
	if days, err := strconv.ParseFloat(strings.TrimSuffix(text, "d"), 64); err == nil && days >= 0 && days < 100_000 {
		return time.Duration(days * float64(24*time.Hour)), nil
	}
	d, err := time.ParseDuration(text)
	if err == nil && d < 0 {
		err = strconv.ErrRange
	}
	return d, err
}

func later(a *time.Time, b time.Time) *time.Time {
	if a != nil && a.After(b) {
		return a
	}
	return &b
}

func splitSign(text string) (sign byte, rest string) {
	if text != "" && (text[0] == '+' || text[0] == '-') {
		return text[0], text[1:]
	}
	return 0, text
}

type duCmd struct {
	Paths    []workspace.Path `arg:"" optional:"" name:"path" help:"What to add up; by default everything."`
	Summary  bool             `short:"s" help:"Only the paths themselves."`
	Depth    int              `short:"d" help:"List nothing further down; all of it counts." default:"-1" placeholder:"N"`
	All      bool             `short:"a" help:"List files too."`
	Bytes    bool             `short:"b" help:"Print bytes."`
	Apparent bool             `help:"Print sizes with their holes."`
}

func (c *duCmd) run(a *app) error {
	if c.Depth < -1 || c.Summary && c.Depth > 0 {
		return usageError("the depth is 0 or more, and 0 with --summary")
	}
	if c.Summary {
		c.Depth = 0
	}
	req := workspace.UsageRequest{Past: true, Paths: orTop(c.Paths), All: c.All}
	if c.Depth >= 0 {
		req.MaxDepth = &c.Depth
	}
	list, err := call(a, workspace.OpUsage, func(v string) workspace.UsageRequest { req.Vault = v; return req }, workspace.Streams{})
	if err != nil {
		return err
	}
	return a.print(list, func(w io.Writer) {
		rows := make([][]string, 0, len(list))
		for _, u := range list {
			n := u.Bytes
			if c.Apparent {
				n = u.Size
			}
			text := size(n)
			if c.Bytes {
				text = strconv.FormatInt(n, 10)
			}
			rows = append(rows, []string{text, safe(u.Path)})
		}
		table(w, rows)
	})
}
