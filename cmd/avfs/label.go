package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/agentvfs/avfs/workspace"
)

type tagCmd struct {
	Tag   string           `arg:"" optional:"" help:"The tag. Without paths it lists what has it."`
	Paths []workspace.Path `arg:"" optional:"" name:"path" help:"What gets the tag."`
}

// tagCount is a tag and how many paths have it.
type tagCount struct {
	Tag   string `json:"tag"`
	Paths int    `json:"paths"`
}

func (c *tagCmd) run(a *app) error {
	if len(c.Paths) > 0 {
		return a.retag(workspace.OpTag, c.Tag, c.Paths)
	}
	list, err := call(a, workspace.OpTagged, func(v string) workspace.PathRequest {
		return workspace.PathRequest{Vault: v, Paths: orTop(nil)}
	}, workspace.Streams{})
	if err != nil {
		return err
	}
	if c.Tag != "" {
		list = slices.DeleteFunc(list, func(p workspace.TaggedPath) bool { return !slices.Contains(p.Tags, c.Tag) })
		return a.print(list, func(w io.Writer) {
			for _, p := range list {
				fmt.Fprintln(w, safe(p.Path))
			}
		})
	}
	counts := countTags(list)
	return a.print(counts, func(w io.Writer) {
		rows := make([][]string, 0, len(counts))
		for _, t := range counts {
			rows = append(rows, []string{safe(t.Tag), fmt.Sprint(t.Paths)})
		}
		table(w, rows)
	})
}

// countTags lists the tags of paths, in order.
func countTags(list []workspace.TaggedPath) []tagCount {
	n := map[string]int{}
	for _, p := range list {
		for _, tag := range p.Tags {
			n[tag]++
		}
	}
	counts := make([]tagCount, 0, len(n))
	for tag, paths := range n {
		counts = append(counts, tagCount{tag, paths})
	}
	slices.SortFunc(counts, func(a, b tagCount) int { return strings.Compare(a.Tag, b.Tag) })
	return counts
}

func (a *app) retag(op workspace.Op[workspace.TagRequest, workspace.PathsResult], tag string, paths []workspace.Path) error {
	res, err := call(a, op, func(v string) workspace.TagRequest {
		return workspace.TagRequest{Vault: v, Tags: []string{tag}, Paths: paths}
	}, workspace.Streams{})
	if err != nil {
		return err
	}
	return a.print(res, nil)
}

type untagCmd struct {
	Tag   string           `arg:"" help:"The tag."`
	Paths []workspace.Path `arg:"" name:"path" help:"What loses the tag."`
}

func (c *untagCmd) run(a *app) error { return a.retag(workspace.OpUntag, c.Tag, c.Paths) }

type metaCmd struct {
	Path  workspace.Path `arg:"" help:"The file or directory."`
	Set   []string       `arg:"" optional:"" name:"key=value" help:"What to note; a KEY alone prints its value."`
	Unset []string       `help:"Forget this key." placeholder:"KEY" sep:"none"`
}

func (c *metaCmd) run(a *app) error {
	req := workspace.MetaRequest{Path: c.Path, Unset: c.Unset, Set: map[string]string{}}
	var asked []string
	for _, s := range c.Set {
		if key, value, ok := strings.Cut(s, "="); ok {
			req.Set[key] = value
		} else {
			asked = append(asked, s)
		}
	}
	op := workspace.OpMeta
	if len(req.Set)+len(req.Unset) > 0 {
		if len(asked) > 0 {
			return usageError("%q is no KEY=VALUE", asked[0])
		}
		op = workspace.OpSetMeta
	} else {
		req.Past = true
	}
	m, err := call(a, op, func(v string) workspace.MetaRequest { req.Vault = v; return req }, workspace.Streams{})
	if err != nil {
		return err
	}
	for _, key := range asked {
		if _, ok := m.Meta[key]; !ok {
			return noMeta(string(c.Path), key)
		}
	}
	return a.print(m, func(w io.Writer) { describeMeta(w, m, asked, len(c.Set) == 0 && len(c.Unset) == 0) })
}

// describeMeta prints the values that were asked for, or else all there is.
func describeMeta(w io.Writer, m workspace.Meta, asked []string, all bool) {
	for _, key := range asked {
		fmt.Fprintln(w, m.Meta[key])
	}
	if !all {
		return
	}
	var rows [][]string
	for _, tag := range m.Tags {
		rows = append(rows, []string{"tag", safe(tag)})
	}
	keys := make([]string, 0, len(m.Meta))
	for key := range m.Meta {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		rows = append(rows, []string{safe(key), safe(m.Meta[key])})
	}
	table(w, rows)
}
