// Command testreport runs go test with its own arguments and prints what go test
// prints without -v: a line per package, and the output of what failed. After that
// it names what was skipped, with the reason, and closes with a line such as
//
//	1234 passed, 0 failed, 5 skipped
//
// which counts tests and subtests. It exits non-zero if anything failed.
package main

import (
	"fmt"
	"os"
	"os/exec"
)

func main() {
	failed, err := runTests(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "testreport:", err)
	}
	if failed || err != nil {
		os.Exit(1)
	}
}

// runTests runs go test and reports it on standard output.
func runTests(args []string) (failed bool, err error) {
	cmd := exec.Command("go", append([]string{"test", "-json"}, args...)...)
	cmd.Stderr = os.Stderr
	events, err := cmd.StdoutPipe()
	if err != nil {
		return true, err
	}
	if err := cmd.Start(); err != nil {
		return true, err
	}
	r := newReport(os.Stdout)
	readErr := r.read(events)
	if readErr != nil {
		// Let go test end rather than wait for a reader that is gone.
		_ = events.Close()
	}
	waitErr := cmd.Wait()
	failed = r.close()
	if readErr != nil {
		return true, readErr
	}
	if waitErr != nil && !failed {
		// Nothing failed that the events name, yet go test is not content.
		return true, waitErr
	}
	return failed, nil
}
