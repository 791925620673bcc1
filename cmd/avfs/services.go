package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/agentvfs/avfs/proxy/run"
	"github.com/agentvfs/avfs/workspace"
)

type servicesCmds struct {
	List servicesListCmd `cmd:"" help:"List the services of a vault, with the ports that they listen at, and how the last of each name has ended."`
	Logs servicesLogsCmd `cmd:"" help:"Print what a service has printed, while it runs and after it."`
	Stop servicesStopCmd `cmd:"" help:"End a service with everything that it has started: SIGTERM, and SIGKILL two seconds later."`
}

type servicesListCmd struct{}

// serviceDoc is a service with its ports.
type serviceDoc struct {
	workspace.Service
	Ports []run.Port `json:"ports"` // TCP; none where this system does not tell
}

func (c *servicesListCmd) run(a *app) error {
	list, err := call(a, workspace.OpServices, func(v string) workspace.InVault { return workspace.InVault{Vault: v} }, workspace.Streams{})
	if err != nil {
		return err
	}
	docs := []serviceDoc{}
	for _, s := range list {
		doc := serviceDoc{s, []run.Port{}}
		if p := s.Process; p != nil {
			doc.Ports, err = run.Ports(s.ExecID, &run.Command{PID: p.PID, Start: p.Start, Cgroup: p.Cgroup})
			if err != nil {
				return err
			}
		}
		docs = append(docs, doc)
	}
	return a.print(docs, func(w io.Writer) {
		rows := [][]string{{"NAME", "VAULT", "STATE", "PID", "SINCE", "PORTS", "COMMAND"}}
		for i := range docs {
			rows = append(rows, docs[i].row())
		}
		table(w, rows)
	})
}

// row is the service for people.
func (d *serviceDoc) row() []string {
	var ports []string
	for _, p := range d.Ports {
		ports = append(ports, fmt.Sprint(p.Port))
	}
	state := string(d.State)
	switch {
	case d.ExitCode != nil:
		state += fmt.Sprintf(" (%s, exit code %d)", d.Status, *d.ExitCode)
	case d.State == workspace.ServiceEnded:
		state += " (" + d.Status + ")"
	}
	return []string{d.Name, d.Vault, state, fmt.Sprint(d.PID), clock(d.StartedAt), strings.Join(ports, " "), safe(strings.Join(d.Command, " "))}
}

type serviceArg struct {
	Name string `arg:"" help:"The name of the service."`
}

func (c *serviceArg) request(v string) workspace.ServiceRequest {
	return workspace.ServiceRequest{Vault: v, Name: c.Name}
}

type servicesLogsCmd struct {
	serviceArg
	Output outputFlags `embed:""`
}

func (c *servicesLogsCmd) run(a *app) error {
	s, err := call(a, workspace.OpService, c.request, workspace.Streams{})
	if err != nil {
		return err
	}
	return c.Output.print(a, s.ExecID)
}

type servicesStopCmd struct{ serviceArg }

func (c *servicesStopCmd) run(a *app) error {
	s, err := call(a, workspace.OpServiceStop, c.request, workspace.Streams{})
	if err != nil {
		return err
	}
	return a.print(s, func(w io.Writer) { fmt.Fprintf(w, "stopped service %s\n", s.Name) })
}
