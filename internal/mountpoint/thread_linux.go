package mountpoint

import (
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// OnOwnThread runs fn on a thread that shares less with the process, as flags say
// in the terms of unshare(2), and returns when fn does. The thread is thrown away
// afterwards; a child process that asked to die with the thread that started it
// (Pdeathsig) may so die with it. Threads that C code starts from it share what it
// has.
//
// The main thread is never taken, because what /proc says of a process is what its
// main thread has. fn runs all the same where the system refuses; then err says so.
func OnOwnThread(flags int, fn func(err error)) {
	done := make(chan struct{})
	own := func() {
		defer close(done)
		runtime.LockOSThread() // for good: the goroutine's end ends the thread
		fn(unix.Unshare(flags))
	}
	go func() { // ends when another thread has taken over, or with own
		runtime.LockOSThread()
		if unix.Gettid() != os.Getpid() {
			own()
			return
		}
		defer runtime.UnlockOSThread()
		go own() // runs elsewhere while this goroutine holds the main thread
		<-done
	}()
	<-done
}
