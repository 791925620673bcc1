package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// terminal is a pseudo terminal for a command, to be joined to the terminal of a person,
// which from then on passes every key on.
type terminal struct {
	self   string // the program that is to take it
	person *os.File
	before *term.State // nil until it is joined
	master *os.File
	path   string // of the side that is the command's
	slave  *os.File
	resize chan os.Signal
	shown  chan struct{} // closed when all output is shown
}

// openTerminal makes one. end must follow.
func openTerminal(person *os.File) (*terminal, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	t := &terminal{self: self, person: person, master: master, resize: make(chan os.Signal, 1), shown: make(chan struct{})}
	if err := t.open(); err != nil {
		return nil, errors.Join(err, master.Close())
	}
	return t, nil
}

func (t *terminal) open() error {
	fd := int(t.master.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		return err
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		return err
	}
	t.path = "/dev/pts/" + strconv.Itoa(n)
	// An open descriptor of its own keeps the terminal alive until the command has it.
	t.slave, err = os.OpenFile(t.path, os.O_RDWR|unix.O_NOCTTY, 0)
	return err
}

// join joins the two terminals. Before it, keys such as the one that interrupts are for
// avfs, which may have to wait until the command's turn comes.
func (t *terminal) join() (err error) {
	t.fit()
	if t.before, err = term.MakeRaw(int(t.person.Fd())); err != nil {
		return err
	}
	signal.Notify(t.resize, unix.SIGWINCH)
	go func() { // ends with end
		for range t.resize {
			t.fit()
		}
	}()
	go func() { // ends with the process: nothing else can end the read of a terminal
		_, _ = io.Copy(t.master, t.person)
	}()
	go func() { // ends when nobody has the command's side open any more
		defer close(t.shown)
		_, _ = io.Copy(t.person, t.master)
	}()
	return nil
}

// fit gives the pseudo terminal the size of the person's.
func (t *terminal) fit() {
	if ws, err := unix.IoctlGetWinsize(int(t.person.Fd()), unix.TIOCGWINSZ); err == nil {
		_ = unix.IoctlSetWinsize(int(t.master.Fd()), unix.TIOCSWINSZ, ws) // a wrong size is no failure
	}
}

// end shows what is left of the output and gives the person's terminal back.
func (t *terminal) end() error {
	err := t.slave.Close()
	if t.before == nil {
		return errors.Join(err, t.master.Close())
	}
	<-t.shown
	signal.Stop(t.resize)
	close(t.resize)
	return errors.Join(err, t.master.Close(), term.Restore(int(t.person.Fd()), t.before))
}

// terminalWord is the first argument of an avfs that takes a terminal and then becomes
// a command.
const terminalWord = "terminal-of"

// command is what to run so that argv has the terminal.
func (t *terminal) command(argv []string) []string {
	return append([]string{t.self, terminalWord, t.path, "--"}, argv...)
}

// takeTerminal is the main function of such an avfs. It returns only if it fails; ok is
// false if the arguments are others.
func takeTerminal(args []string) (code int, ok bool) {
	if len(args) < 4 || args[0] != terminalWord || args[2] != "--" {
		return 0, false
	}
	err := becomeOn(args[1], args[3:])
	fmt.Fprintln(os.Stderr, "avfs:", err)
	return exitExecError, true
}

// becomeOn makes a terminal that of this process's session and runs a program there.
func becomeOn(path string, argv []string) error {
	program, err := exec.LookPath(argv[0])
	if err != nil {
		return err
	}
	tty, err := os.OpenFile(path, os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return err
	}
	if _, err := unix.Setsid(); err != nil && !errors.Is(err, unix.EPERM) { // EPERM: it leads a session already
		return err
	}
	fd := int(tty.Fd())
	if err := unix.IoctlSetInt(fd, unix.TIOCSCTTY, 0); err != nil {
		return err
	}
	for std := range 3 {
		if err := unix.Dup3(fd, std, 0); err != nil {
			return err
		}
	}
	return unix.Exec(program, argv, os.Environ())
}
