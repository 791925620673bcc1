package main

import (
	"time"

	"github.com/agentvfs/avfs/workspace"
)

type touchCmd struct {
	Paths     []workspace.Path `arg:"" name:"path" help:"Files to make, or of which to set the times."`
	NoCreate  bool             `short:"c" help:"Make no files."`
	Access    bool             `short:"a" help:"Set only the time of the last access."`
	Modify    bool             `short:"m" help:"Set only the time of the last modification."`
	Date      string           `short:"d" help:"The time to set, such as 2026-01-31, 2026-01-31T12:00:00Z or 2h (ago); by default now." placeholder:"TIME"`
	Reference workspace.Path   `short:"r" help:"Take the times of this path of the vault." placeholder:"PATH"`
}

func (c *touchCmd) run(a *app) error {
	if c.Date != "" && c.Reference != "" {
		return usageError("--date and --reference exclude each other")
	}
	req := workspace.TouchRequest{Paths: c.Paths, NoCreate: c.NoCreate, Access: c.Access, Modify: c.Modify, Reference: c.Reference}
	if c.Date != "" {
		at, err := parseTime(c.Date, time.Now())
		if err != nil {
			return err
		}
		req.Time = &at
	}
	res, err := call(a, workspace.OpTouch, func(v string) workspace.TouchRequest { req.Vault = v; return req }, workspace.Streams{})
	if err != nil {
		return err
	}
	return a.print(res, nil)
}

// parseTime reads a moment: a date or time, in our zone unless it names one, or how
// long before now it was.
func parseTime(text string, now time.Time) (time.Time, error) {
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02T15:04", "2006-01-02 15:04", time.DateOnly} {
		if at, err := time.ParseInLocation(layout, text, now.Location()); err == nil {
			return at, nil
		}
	}
	if ago, err := parseAge(text); err == nil {
		return now.Add(-ago), nil
	}
	return time.Time{}, usageError("a time is such as 2026-01-31, 2026-01-31T12:00:00Z or 90m (ago), not %q", text)
}

type lnCmd struct {
	Paths    []workspace.Path `arg:"" name:"path" help:"What to link to, and last the new name or a directory for it."`
	Symbolic bool             `short:"s" help:"Make symbolic links; what they lead to is kept as it is written here."`
	Force    bool             `short:"f" help:"Replace a file that is in the way."`
}

func (c *lnCmd) run(a *app) error {
	if len(c.Paths) < 2 {
		return usageError("name at least one file to link to and the new name")
	}
	last := len(c.Paths) - 1
	req := workspace.LinkRequest{From: c.Paths[:last], To: c.Paths[last], Symbolic: c.Symbolic, Force: c.Force}
	res, err := call(a, workspace.OpLink, func(v string) workspace.LinkRequest { req.Vault = v; return req }, workspace.Streams{})
	if err != nil {
		return err
	}
	return a.print(res, nil)
}
