package workspace

import (
	"context"
	"net/http"
	"net/url"
	"os"
	"os/user"
	"strconv"
	"sync"
	"time"

	"github.com/agentvfs/avfs/engine"
)

// The headers that say who asks for an operation, for the audit. A user can name
// himself as he likes: the socket is his alone.
const (
	headerExec = "Avfs-Exec" // the exec that the caller runs in
	headerUID  = "Avfs-Uid"
	headerPID  = "Avfs-Pid"
	headerUser = "Avfs-User" // the name of the user, escaped as in a URL
)

// actor is who asks for an operation: whom the context names, or else this process, in
// the exec. NoExec is none, and empty is the one that whoever asks is part of.
func (w *Workspace) actor(ctx context.Context, exec string, asked time.Time) engine.Actor {
	a, ok := engine.ActorIn(ctx)
	if !ok {
		a = engine.Actor{UID: os.Getuid(), PID: os.Getpid(), Exec: os.Getenv(execVar)}
	}
	if a.User == "" && a.UID == os.Getuid() {
		a.User = w.userName()
	}
	switch exec {
	case "":
	case NoExec:
		a.Exec = ""
	default:
		a.Exec = exec
	}
	a.Asked = asked
	return a
}

// newUserName looks the user up when the name is first needed; empty is not known.
func newUserName() func() string {
	return sync.OnceValue(func() string {
		u, err := user.Current()
		if err != nil {
			return ""
		}
		return u.Username
	})
}

func setActor(h http.Header, a engine.Actor) {
	h.Set(headerUID, strconv.Itoa(a.UID))
	h.Set(headerPID, strconv.Itoa(a.PID))
	if a.User != "" {
		h.Set(headerUser, url.QueryEscape(a.User))
	}
	if a.Exec != "" {
		h.Set(headerExec, url.QueryEscape(a.Exec))
	}
}

// actorIn reads what setActor wrote. What cannot be read is not known.
func actorIn(h http.Header) engine.Actor {
	number := func(name string) int {
		n, err := strconv.Atoi(h.Get(name))
		if err != nil {
			n = -1
		}
		return n
	}
	text := func(name string) string {
		s, err := url.QueryUnescape(h.Get(name))
		if err != nil {
			s = ""
		}
		return s
	}
	return engine.Actor{UID: number(headerUID), PID: number(headerPID), User: text(headerUser), Exec: text(headerExec), Asked: time.Now()}
}
