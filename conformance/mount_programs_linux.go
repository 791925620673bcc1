package conformance

import (
	"os/exec"
	"path/filepath"
	"testing"
)

var mountProgramTests = []mountTest{
	{"copy a program and run it", "a build runs what it has just linked", (*mountSuite).runCopied},
	{"scripts and working directories", "tools run in the work tree and by relative paths", (*mountSuite).runScripts},
	{"git", "version control uses every kind of rename, link and lock", (*mountSuite).git},
	{"sqlite", "databases need locks, fsync and shared memory", (*mountSuite).sqlite},
	{"make", "a build must see what is up to date and what is not", (*mountSuite).makeTool},
	{"tar and rsync", "a second run that copies everything again means a time or a link was lost", (*mountSuite).archives},
	{"python", "virtual environments need links, and renames over open files", (*mountSuite).python},
}

func (s *mountSuite) runCopied(t *testing.T) {
	dir := s.dir(t)
	wantOutput(t, shellIn(t, dir, `for i in 1 2 3 4 5 6 7 8 9 10; do cp /bin/echo e$i && ./e$i $i >/dev/null || echo fail; done
		cp /bin/sleep sl; ./sl 100 & while ! readlink /proc/$!/exe | grep -q '/sl$'; do :; done
		cp /bin/true sl 2>&1 | grep -o 'Text file busy'; kill $!; wait 2>/dev/null; cp /bin/echo sl && ./sl done`), "Text file busy\ndone\n")
}

func (s *mountSuite) runScripts(t *testing.T) {
	dir := s.dir(t)
	wantOutput(t, shellIn(t, dir, `mkdir bin; printf '#!/bin/sh\necho "$1 in $(basename "$PWD")"\n' > bin/run; chmod 755 bin/run
		mkdir work; cd work; ../bin/run here; cat ../bin/run | wc -l; (cd ..; bin/run there); chmod 644 ../bin/run; ../bin/run 2>/dev/null || echo refused`),
		"here in work\n2\nthere in "+filepath.Base(dir)+"\nrefused\n")
}

func (s *mountSuite) git(t *testing.T) {
	needsProgram(t, "git")
	out := shellIn(t, s.dir(t), `set -e; git init -q -b main r; cd r; git config user.email a@x; git config user.name a
		for i in $(seq 50); do echo $i > f$i; done; git add -A; git commit -qm 1; git switch -qc dev; echo x >> f1; git commit -qam 2
		git switch -q main; git merge -q dev; echo w >> f2; git stash -q; git stash pop -q; git commit -qam 3; git gc -q --prune=now
		git status -s; find .git -name '*.lock'; git log --oneline | wc -l; git fsck --full 2>&1 | grep -v dangling || true
		cd ..; git clone -q r c; git -C c fsck --full; git -C c status -s; diff -r -x .git r c && echo same`)
	wantOutput(t, out, "3\nsame\n")
}

func (s *mountSuite) sqlite(t *testing.T) {
	needsProgram(t, "sqlite3")
	dir := s.dir(t)
	for _, mode := range []string{"delete", "wal"} {
		got := shellIn(t, dir, `sqlite3 `+mode+`.db 'PRAGMA journal_mode=`+mode+`; CREATE TABLE t(x);' > /dev/null
			for p in 1 2 3 4; do (for i in $(seq 15); do sqlite3 -cmd '.timeout 60000' `+mode+`.db 'INSERT INTO t VALUES(1)'; done) & done; wait
			sqlite3 `+mode+`.db 'SELECT count(*) FROM t; PRAGMA integrity_check;'; ls -A | grep -c `+mode)
		wantOutput(t, got, "60\nok\n1\n")
	}
}

func (s *mountSuite) makeTool(t *testing.T) {
	needsProgram(t, "make")
	wantOutput(t, shellIn(t, s.dir(t), `printf 'o: i\n\tcp i o\n' > Makefile; echo 1 > i; make -s; make -q && echo uptodate; sleep 0.02; echo 2 > i; make -q || echo stale`),
		"uptodate\nstale\n")
}

func (s *mountSuite) archives(t *testing.T) {
	dir := s.dir(t)
	wantOutput(t, shellIn(t, dir, `mkdir a; for i in 1 2 3; do echo $i > a/$i; done; ln a/1 a/h; ln -s 1 a/s; mkfifo a/p; mkdir a/d; chmod 700 a/d
		touch -d '2001-02-03 04:05:06.789' a/2 a/d; tar cf a.tar a; mkdir x; tar xpf a.tar -C x; tar df a.tar -C x && echo same; stat -c '%h %a' x/a/1 x/a/d`),
		"same\n2 644\n2 700\n")
	if _, err := exec.LookPath("rsync"); err != nil {
		t.Log("rsync is not installed; only tar was run")
		return
	}
	wantOutput(t, shellIn(t, dir, `rsync -aH a/ b/; rsync -aHi a/ b/; stat -c %h b/1`), "2\n")
}

func (s *mountSuite) python(t *testing.T) {
	needsProgram(t, "python3")
	wantOutput(t, shellIn(t, s.dir(t), `python3 -m venv --without-pip v && v/bin/python -c 'import sys; print(sys.prefix != sys.base_prefix)'; test -L v/bin/python && echo link
		unset PYTHONDONTWRITEBYTECODE; mkdir p; echo 'x = 1' > p/m.py; cd p; ../v/bin/python -c 'import m; print(m.x)'; ls __pycache__ | wc -l`), "True\nlink\n1\n1\n")
}
