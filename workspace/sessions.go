package workspace

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/agentvfs/avfs/engine"
)

// Session is what commands of one name leave to the next: where they are and what
// they have exported. It is kept in the store, beside the vault's tree.
type Session struct {
	Name      string            `json:"name"`
	Vault     string            `json:"vault"`
	Cwd       string            `json:"cwd"` // in the vault
	Env       map[string]string `json:"env"`
	Unset     []string          `json:"unset"` // variables that commands do not get any more
	Exec      string            `json:"exec_id,omitempty"`
	UpdatedAt time.Time         `json:"updated_at"`
}

// Kinds of errors of sessions.
const (
	SessionNotFound engine.Kind = "SessionNotFound"
	// SessionMoved says that another command has left the session in another state
	// than the caller knows.
	SessionMoved engine.Kind = "SessionMoved"
)

const noteSession = "session"

// SessionRequest names a session of a vault.
type SessionRequest struct {
	Vault string `json:"vault"`
	Name  string `json:"name"`
}

// sessionNote is the name of the note of a session. The id of the vault is in it, so
// that a vault of the same name begins anew.
func sessionNote(v *engine.Vault, name string) string { return fmt.Sprintf("%d/%s", v.Info().ID, name) }

// CheckSessionName rejects what is no name of a session.
func CheckSessionName(name string) error {
	if err := engine.CheckVaultName(name); err != nil {
		return &engine.Error{Kind: engine.InvalidName, Op: "session name", Path: fmt.Sprintf("%q", name), Err: errors.Unwrap(err)}
	}
	return nil
}

// session is the session of a name, nil if there is none.
func (o *Owner) session(ctx context.Context, v *engine.Vault, name string) (*Session, error) {
	n, err := o.store.Note(ctx, noteSession, sessionNote(v, name))
	if err != nil || n == nil {
		return nil, err
	}
	return sessionOf(n)
}

func sessionOf(n *engine.Note) (*Session, error) {
	s := &Session{}
	if err := json.Unmarshal(n.Body, s); err != nil {
		return nil, &engine.Error{Kind: engine.Corrupt, Op: "read session", Path: n.Name, Err: err}
	}
	s.UpdatedAt = n.At
	return s, nil
}

// noSession is a session that nothing is known of.
func noSession(req SessionRequest) *Session {
	return &Session{Name: req.Name, Vault: req.Vault, Cwd: "/", Env: map[string]string{}, Unset: []string{}}
}

// OpSession gives a session; one that does not exist is empty.
var OpSession = Op[SessionRequest, Session]{Name: "session.show",
	Run: func(ctx context.Context, o *Owner, req SessionRequest, _ Streams) (Session, error) {
		none := *noSession(req)
		v, err := o.vault(ctx, req.Vault)
		if err != nil {
			return none, err
		}
		s, err := o.session(ctx, v, req.Name)
		if err != nil || s == nil {
			return none, err
		}
		return *s, nil
	}}

// OpSessions lists the sessions of a vault by name, without those that are damaged,
// which a check names.
var OpSessions = Op[InVault, []Session]{Name: "session.list",
	Run: func(ctx context.Context, o *Owner, req InVault, _ Streams) ([]Session, error) {
		v, err := o.vault(ctx, req.Vault)
		if err != nil {
			return nil, err
		}
		notes, _, err := o.store.Notes(ctx, noteSession)
		if err != nil {
			return nil, err
		}
		list := []Session{}
		for i := range notes {
			if !strings.HasPrefix(notes[i].Name, sessionNote(v, "")) {
				continue
			}
			s, err := sessionOf(&notes[i])
			if err != nil {
				return nil, err
			}
			list = append(list, *s)
		}
		return list, nil
	}}

// OpSessionDelete forgets a session, also one that is damaged.
var OpSessionDelete = Op[SessionRequest, Session]{Name: "session.delete",
	Run: func(ctx context.Context, o *Owner, req SessionRequest, _ Streams) (Session, error) {
		v, err := o.vault(ctx, req.Vault)
		if err != nil {
			return Session{}, err
		}
		gone, err := o.session(ctx, v, req.Name)
		damaged := engine.KindOf(err) == engine.Corrupt
		if err != nil && !damaged {
			return Session{}, err
		}
		_, err = o.store.ChangeNote(ctx, noteSession, sessionNote(v, req.Name), nil, func(old *engine.Note) (*engine.Note, error) {
			if old == nil && damaged {
				gone = noSession(req)
				return nil, nil
			}
			if old == nil {
				return nil, &engine.Error{Kind: SessionNotFound, Op: "delete session", Path: req.Name, Err: errors.New("no such session")}
			}
			var err error
			gone, err = sessionOf(old)
			return nil, err
		})
		if err != nil {
			return Session{}, err
		}
		return *gone, nil
	}}

// checkSession fails with SessionMoved if the session of an exec is another by now than
// its caller knows.
func (o *Owner) checkSession(ctx context.Context, v *engine.Vault, req *ExecRequest) error {
	if req.Session == "" {
		return nil
	}
	s, err := o.session(ctx, v, req.Session)
	if err != nil {
		return err
	}
	if s != nil && s.Exec != req.SessionAfter || s == nil && req.SessionAfter != "" {
		return &engine.Error{Kind: SessionMoved, Op: "use session", Path: req.Session, Err: errors.New("another command has changed it")}
	}
	return nil
}

// keepSession is what a command leaves to the next one of its session.
func (x *held) keepSession(ctx context.Context, s *Session) error {
	if x.req.Session == "" || s == nil {
		return nil
	}
	s.Name, s.Vault, s.Exec = x.req.Session, x.req.Vault, x.req.ID
	body, err := json.Marshal(s)
	if err != nil {
		return err
	}
	_, err = x.o.store.ChangeNote(ctx, noteSession, sessionNote(x.v, s.Name), nil, func(*engine.Note) (*engine.Note, error) {
		return &engine.Note{Vault: x.req.Vault, VaultID: x.v.Info().ID, Body: body}, nil
	})
	return err
}

func sessionOps() map[string]handler {
	all := map[string]handler{}
	add(all, OpSession)
	add(all, OpSessions)
	add(all, OpSessionDelete)
	return all
}
