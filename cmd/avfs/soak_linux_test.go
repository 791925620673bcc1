package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/agentvfs/avfs/backends"
	"github.com/agentvfs/avfs/workspace"
)

// soakVar asks for a long soak: a duration such as 1h, or anything else for
// soakLong.
const soakVar = "AVFS_SOAK"

const (
	soakShort = 25 * time.Second
	soakLong  = 5 * time.Minute
	// soakRounds is how many rounds there are at least, whatever the time, so that
	// what leaks once a round exceeds what is allowed.
	soakRounds = 20
	// soakReserve is the time before the end of all tests that is left to end cleanly.
	soakReserve = time.Minute
	// soakWindow is how many samples stand for the beginning, and for the end.
	soakWindow = 5
)

// TestSoak serves a vault for a while, through everything that people do with one,
// and watches from outside what its owner takes: nothing may grow.
func TestSoak(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED, NOT PROVEN: that an owner does not grow takes too long for -short")
	}
	type variant struct{ backend, driver string }
	var variants []variant
	for _, backend := range backends.Names() {
		variants = append(variants, variant{backend, drivers()[0].name})
	}
	for _, d := range drivers()[1:] {
		variants = append(variants, variant{backends.Names()[0], d.name})
	}
	for _, v := range variants {
		t.Run(v.backend+" "+v.driver, func(t *testing.T) {
			t.Parallel()
			d, err := findDriver(v.driver)
			if err != nil {
				t.Fatal(err)
			}
			if err := d.available(); err != nil {
				t.Skipf("SKIPPED, NOT PROVEN: that an owner with %s does not grow: %v", v.driver, err)
			}
			newSoak(t, v.backend, v.driver).run(soakTime())
		})
	}
}

func soakTime() time.Duration {
	text := os.Getenv(soakVar)
	if text == "" {
		return soakShort
	}
	if d, err := time.ParseDuration(text); err == nil {
		return d
	}
	return soakLong
}

// soak is a vault that is worked with.
type soak struct {
	t     *testing.T
	dir   string // everything is in it
	point string // where the vault is mounted; empty when it is no more
	env   []string
	rng   *rand.Rand
	round int
}

func newSoak(t *testing.T, backend, driver string) *soak {
	dir, err := os.MkdirTemp("", "soak") // short, for the sockets in it
	if err != nil {
		t.Fatal(err)
	}
	seed := rand.Uint64()
	t.Logf("the seed is %d", seed)
	s := &soak{t: t, dir: dir, point: filepath.Join(dir, "m"), rng: rand.New(rand.NewPCG(seed, 0))}
	s.env = append(os.Environ(), "HOME="+dir, "AVFS_HOME="+filepath.Join(dir, "home"), lingerVar+"=1s", "AVFS_VAULT=",
		"AVFS_BACKEND="+backend, driverVar+"="+driver, vitalsVar+"="+s.vitalsDir())
	t.Cleanup(s.end)
	if err := os.Mkdir(s.vitalsDir(), 0o700); err != nil {
		t.Fatal(err)
	}
	s.avfs("vault", "create", "--backend", backend, "v")
	s.avfs("mount", "v", s.point)
	return s
}

func (s *soak) vitalsDir() string { return filepath.Join(s.dir, "vitals") }

// end leaves nothing behind, whatever has happened.
func (s *soak) end() {
	if s.point != "" {
		if _, err := s.try("unmount", "--force", s.point); err != nil {
			s.t.Error(err)
		}
	}
	if _, err := s.try("serve", "--stop", "--force", "v"); err != nil {
		s.t.Error(err)
	}
	deadline := time.Now().Add(10 * time.Second)
	left := leftovers(s.dir + "/")
	for ; len(left) > 0 && time.Now().Before(deadline); left = leftovers(s.dir + "/") {
		time.Sleep(10 * time.Millisecond)
	}
	if len(left) > 0 {
		s.t.Errorf("left behind: %s", strings.Join(left, "; "))
		return // not into a mount
	}
	if err := os.RemoveAll(s.dir); err != nil {
		s.t.Error(err)
	}
}

// avfs runs a command that must succeed and returns its standard output.
func (s *soak) avfs(args ...string) []byte {
	s.t.Helper()
	out, err := s.try(args...)
	if err != nil {
		s.t.Fatalf("round %d: avfs %q: %v", s.round, args, err)
	}
	return out
}

// try runs a command and returns its standard output; its error tells what it said.
func (s *soak) try(args ...string) ([]byte, error) {
	var stdout, stderr bytes.Buffer
	cmd := exec.Command("avfs", args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = s.env, &stdout, &stderr
	cmd.Stdin = strings.NewReader(strings.Repeat("input\n", 1000))
	err := cmd.Run()
	if err != nil {
		err = fmt.Errorf("%w: %s%s", err, stderr.Bytes(), stdout.Bytes())
	}
	return stdout.Bytes(), err
}

// run works for a while, compares the beginning with the end, and checks the store.
func (s *soak) run(length time.Duration) {
	var samples []sample
	s.fillCaches()
	for began := time.Now(); s.round < soakRounds || time.Since(began) < length; s.round++ {
		for _, i := range s.rng.Perm(len(soakSteps)) {
			soakSteps[i](s)
		}
		if end, ok := s.t.Deadline(); ok && time.Until(end) < soakReserve {
			s.t.Fatalf("there was time for %d rounds only: raise -timeout", s.round)
		}
		wal := s.walBytes() // before a collection makes it short
		s.avfs("prune", "--keep-last", "10", "--keep-hourly", "0", "--keep-daily", "0")
		s.avfs("gc")
		samples = append(samples, s.sample())
		samples[s.round]["WAL bytes"] = wal
	}
	s.compare(samples)
	s.avfs("unmount", s.point)
	s.point = ""
	s.avfs("fsck", "--read-data")
}

// fillCaches writes and reads more than the caches of an owner hold, so that they do
// not grow later: chunks, and nodes, which long links make large.
func (s *soak) fillCaches() {
	links := filepath.Join(s.point, "links")
	s.check(os.Mkdir(links, 0o755))
	for i := range 10_000 {
		s.check(os.Symlink(strings.Repeat("x", 4000), filepath.Join(links, strconv.Itoa(i))))
	}
	s.avfs("checkpoint", "save", "links")
	s.avfs("ls", "-l", "/links@links")
	s.avfs("checkpoint", "delete", "links")
	s.check(os.RemoveAll(links))
	path := filepath.Join(s.point, "fill")
	for range 3 {
		s.check(os.WriteFile(path, s.random(16<<20), 0o644))
		s.avfs("checkpoint", "save", "full") // commits it
		s.avfs("checkpoint", "delete", "full")
	}
	s.check(os.Remove(path))
}

func (s *soak) random(n int) []byte {
	p := make([]byte, n)
	for i := range p {
		p[i] = byte(s.rng.Uint32())
	}
	return p
}

// soakLimits are what a sample holds, and by how much it may be larger at the end:
// by less than what a leak in each round adds. Every command has its entry in the
// audit, so a store grows a little.
var soakLimits = []struct {
	name            string
	slack, perRound int64
}{
	{name: "goroutines", slack: 3},
	{name: "descriptors", slack: 4},
	{name: "threads", slack: 6},
	{name: "children"},
	{name: "mounts"},
	{name: "heap bytes", slack: 2 << 20}, // full caches of 64 MiB still change what they are full of
	{name: "resident bytes", slack: 12 << 20},
	{name: "WAL bytes", slack: 4 << 20},
	{name: "store bytes", slack: 4 << 20, perRound: 16 << 10},
	{name: "files in the home", slack: 4},
}

// sample is what an owner takes, by the names of soakLimits.
type sample map[string]int64

func (s *soak) sample() sample {
	var mounts []workspace.MountInfo
	s.check(json.Unmarshal(s.avfs("mounts", "--json"), &mounts))
	if len(mounts) == 0 {
		s.t.Fatalf("round %d: nothing is mounted", s.round)
	}
	proc := fmt.Sprintf("/proc/%d", mounts[0].PID)
	own, err := askVitals(s.vitalsDir(), mounts[0].PID)
	s.check(err)
	got := sample{"goroutines": int64(own.Goroutines), "heap bytes": int64(own.HeapBytes)}
	fds, err := os.ReadDir(proc + "/fd")
	s.check(err)
	got["descriptors"] = int64(len(fds))
	tasks, err := filepath.Glob(proc + "/task/*/children")
	s.check(err)
	got["threads"] = int64(len(tasks))
	for _, task := range tasks {
		if b, err := os.ReadFile(task); err == nil { // a thread may be gone by now
			got["children"] += int64(len(bytes.Fields(b)))
		}
	}
	status, err := os.ReadFile(proc + "/status")
	s.check(err)
	_, resident, _ := strings.Cut(string(status), "VmRSS:")
	var kib int64
	_, err = fmt.Sscan(resident, &kib)
	s.check(err)
	got["resident bytes"] = kib << 10
	table, err := os.ReadFile("/proc/self/mountinfo")
	s.check(err)
	got["mounts"] = int64(bytes.Count(table, []byte(s.dir+"/")))
	s.check(filepath.WalkDir(filepath.Join(s.dir, "home"), func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil || e.IsDir() {
			return err
		}
		got["files in the home"]++
		if strings.Contains(path, "/vaults/") {
			got["store bytes"] += info.Size()
		}
		return nil
	}))
	return got
}

// walBytes is the size of the store's write-ahead log, 0 if it has none.
func (s *soak) walBytes() int64 {
	info, err := os.Stat(filepath.Join(s.dir, "home", "vaults", "v.avfs-wal"))
	if err != nil {
		return 0
	}
	return info.Size()
}

// compare fails for what was less in every sample of the beginning than in each of
// the end. The beginning is what comes after a fifth of the rounds, in which pools
// fill.
func (s *soak) compare(samples []sample) {
	first := samples[len(samples)/5:][:soakWindow]
	last := samples[len(samples)-soakWindow:]
	s.t.Logf("%d rounds", len(samples))
	for _, limit := range soakLimits {
		most, least := first[0][limit.name], last[0][limit.name]
		for i := range soakWindow {
			most, least = max(most, first[i][limit.name]), min(least, last[i][limit.name])
		}
		s.t.Logf("%s: at most %d in the beginning, at least %d in the end, at first %d", limit.name, most, least, samples[0][limit.name])
		if least > most+limit.slack+limit.perRound*int64(len(samples)) {
			var all []int64
			for _, sample := range samples {
				all = append(all, sample[limit.name])
			}
			s.t.Errorf("%s have grown from %d to %d: %d", limit.name, most, least, all)
		}
	}
}
