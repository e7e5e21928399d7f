// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package robustness

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/platform-ai/platform/pkg/storage/archive"
	"github.com/platform-ai/platform/test/kit"
)

// TestBackupsUnderLoad takes backups with the command while writers append and watchers watch, restores each with the
// command, and starts a server on it. That server has everything that was acknowledged before the command was started.
// What it has is exactly what the live server has up to one revision.
func TestBackupsUnderLoad(t *testing.T) {
	n := rounds(t)
	s := kit.StartServer(t, t.TempDir(), "--allow-host-commands")
	c := newClient(t, s.Kubeconfig)
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(n)*time.Minute+5*time.Minute)
	defer cancel()
	defer deleteTasks(t, s)
	names := openTasks(t, ctx, c, s)
	watching, stopWatching := context.WithCancel(ctx)
	defer stopWatching()
	ws := make([]*watcher, watchers)
	for i := range ws {
		ws[i] = newWatcher(newClient(t, s.Kubeconfig), 1)
		go ws[i].run(watching)
	}
	load := startLoad(t, ctx, s.Kubeconfig, names)
	type taken struct {
		file   string
		before []record
	}
	var backups []taken
	for i := range n {
		pause(ctx, minRunning)
		b := taken{filepath.Join(t.TempDir(), fmt.Sprintf("%d.tar", i)), load.acknowledged()}
		if r := s.Shell(t, "platform backup "+b.file); r.Code != 0 {
			t.Fatal(r.Output)
		}
		backups = append(backups, b)
	}
	acknowledged, err := load.stop()
	if err != nil {
		t.Fatal(err)
	}
	live, last, err := c.list(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := checkStored(acknowledged, live); err != nil {
		t.Error(err)
	}
	rev, err := strconv.ParseUint(last, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range ws { // backups disturbed no watch
		if err := w.check(ctx, live, rev); err != nil {
			t.Error(err)
		}
	}
	stopWatching()
	uids := s.MustShell(t, listUIDs)
	for i, b := range backups {
		checkRestored(t, ctx, s, b.file, b.before, live, uids)
		t.Logf("backup %d: %d events of %d were acknowledged before it", i, len(b.before), len(acknowledged))
	}
}

const listUIDs = `kubectl get tasks -o jsonpath='{range .items[*]}{.metadata.name}={.metadata.uid} {end}'`

// checkRestored restores a backup into a folder of its own and compares a server on it with the live one.
func checkRestored(t *testing.T, ctx context.Context, s *kit.Server, file string, before, live []record, uids string) {
	t.Helper()
	m := manifest(t, file)
	dir := t.TempDir()
	s.MustShell(t, fmt.Sprintf("cp -r %s/pki %s/ && platform restore %s --data-dir %[2]s", s.DataDir, dir, file))
	found := kit.StartServer(t, dir)
	c := newClient(t, found.Kubeconfig)
	events, now, err := c.list(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := checkStored(before, events); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(byStream(upTo(live, m.Revision)), byStream(upTo(events, m.Revision)), cmp.AllowUnexported(record{})); diff != "" {
		t.Errorf("restored at revision %d (-live +restored): %s", m.Revision, diff)
	}
	if got := found.MustShell(t, listUIDs); got != uids {
		t.Errorf("tasks %s, want %s", got, uids)
	}
	// A watcher of the old server may have seen what is not here, so it is told to list again.
	q := fmt.Sprintf("executionevents?watch=true&resourceVersion=%d", m.Revision+1)
	var frame struct {
		Type   string
		Object struct{ Code int }
	}
	body := c.get(t, ctx, base+q)
	defer body.Close()
	if err := json.NewDecoder(body).Decode(&frame); err != nil || frame.Type != "ERROR" || frame.Object.Code != http.StatusGone {
		t.Errorf("a watch of the old server's revision: %+v, %v; the store is at %s", frame, err, now)
	}
	if err := found.Stop(); err != nil {
		t.Error(err)
	}
}

// byStream orders events by task and sequence.
func byStream(all []record) []record {
	out := slices.Clone(all)
	slices.SortFunc(out, func(a, b record) int {
		if c := strings.Compare(a.task, b.task); c != 0 {
			return c
		}
		return int(a.seq - b.seq)
	})
	return out
}

func manifest(t *testing.T, file string) *archive.Manifest {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	m, err := archive.Check(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// get opens a path for reading.
func (c *client) get(t *testing.T, ctx context.Context, path string) io.ReadCloser {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	return resp.Body
}

// fill writes more than the buffers between a server and its client hold.
func fill(t *testing.T, ctx context.Context, c *client) {
	t.Helper()
	random := rand.NewChaCha8([32]byte{})
	data := make([]byte, 600<<10)
	for i := range 40 {
		if _, err := random.Read(data); err != nil {
			t.Fatal(err)
		}
		body, err := json.Marshal(map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]string{"name": fmt.Sprintf("big-%d", i)}, "binaryData": map[string][]byte{"data": data},
		})
		if err == nil {
			err = c.insist(ctx, http.MethodPost, "/api/v1/namespaces/default/configmaps", body, nil)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestServerKilledDuringBackup kills the server while a client reads a backup: the command fails and leaves no file,
// and after the next start nothing is left of the copy.
func TestServerKilledDuringBackup(t *testing.T) {
	s := kit.StartServer(t, t.TempDir())
	c := newClient(t, s.Kubeconfig)
	ctx := t.Context()
	fill(t, ctx, c)
	left := filepath.Join(s.DataDir, "store", "checkpoint")
	for range rounds(t) {
		slow := c.get(t, ctx, archive.Path)
		if _, err := io.ReadFull(slow, make([]byte, 1<<10)); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(left); err != nil {
			t.Fatalf("a backup is being read: %v", err)
		}
		if r := s.Shell(t, "platform backup "+filepath.Join(t.TempDir(), "second.tar")); r.Code != 1 || !strings.Contains(r.Output, "only one can be read at a time") {
			t.Errorf("second backup: %d %s", r.Code, r.Output)
		}
		s.Kill()
		if _, err := io.Copy(io.Discard, slow); err == nil {
			t.Error("the backup ended like a whole one")
		}
		slow.Close()
		if _, err := os.Stat(left); err != nil {
			t.Fatalf("a killed server leaves its copy: %v", err)
		}
		s.Restart(t)
		if _, err := os.Stat(left); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the copy is left after a start: %v", err)
		}
		file := filepath.Join(t.TempDir(), "x.tar")
		s.MustShell(t, "platform backup "+file)
		manifest(t, file)
	}
}

// TestBackupOfAServerThatStops: a server that is told to stop does not wait for a client that has stopped reading, and
// leaves no copy. The client does not take the backup for complete.
func TestBackupOfAServerThatStops(t *testing.T) {
	s := kit.StartServer(t, t.TempDir())
	fill(t, t.Context(), newClient(t, s.Kubeconfig))
	slow := newClient(t, s.Kubeconfig).get(t, t.Context(), archive.Path)
	defer slow.Close()
	if _, err := io.ReadFull(slow, make([]byte, 1<<10)); err != nil {
		t.Fatal(err)
	}
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(s.DataDir, "store", "checkpoint")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the copy is left: %v", err)
	}
	if _, err := io.Copy(io.Discard, slow); err == nil {
		t.Error("the backup ended like a whole one")
	}
}

// TestClientLeavesBackup: when the client disconnects, the copy is deleted.
func TestClientLeavesBackup(t *testing.T) {
	s := kit.StartServer(t, t.TempDir())
	c := newClient(t, s.Kubeconfig)
	fill(t, t.Context(), c)
	ctx, leave := context.WithCancel(t.Context())
	slow := c.get(t, ctx, archive.Path)
	if _, err := io.ReadFull(slow, make([]byte, 1<<10)); err != nil {
		t.Fatal(err)
	}
	leave()
	slow.Close()
	file := filepath.Join(t.TempDir(), "x.tar")
	for r := s.Shell(t, "platform backup "+file); r.Code != 0; r = s.Shell(t, "platform backup "+file) {
		if !strings.Contains(r.Output, "only one can be read at a time") {
			t.Fatal(r.Output)
		}
	}
	manifest(t, file)
}

// TestRestoreKilled kills the command after it has read a random part of a backup, and, each fourth time, at a random moment when it
// may read all of it. Either the whole store is there or none, and a later restore works.
func TestRestoreKilled(t *testing.T) {
	s := kit.StartServer(t, t.TempDir())
	fill(t, t.Context(), newClient(t, s.Kubeconfig))
	file := filepath.Join(t.TempDir(), "x.tar")
	s.MustShell(t, "platform backup "+file)
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	restore := func(from, dir string) *exec.Cmd {
		return exec.CommandContext(t.Context(), kit.Bin(t, "platform"), "restore", from, "--data-dir", dir)
	}
	interrupted, empty := 0, 0
	for i := range 4 * rounds(t) {
		dir := t.TempDir()
		var cmd *exec.Cmd
		if i%4 == 3 {
			cmd = restore(file, dir)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			pause(t.Context(), time.Duration(rand.Int64N(int64(maxRestore))))
		} else {
			cmd = restore("-", dir)
			feed(t, cmd, whole[:rand.IntN(len(whole)-restoredLast)])
		}
		if err := cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Fatal(err)
		}
		if cmd.Wait() != nil {
			interrupted++
		} else if i%4 != 3 {
			t.Error("a restore of a part of a backup succeeded")
		}
		if _, err := os.Stat(filepath.Join(dir, "store")); errors.Is(err, fs.ErrNotExist) {
			empty++
			if out, err := restore(file, dir).CombinedOutput(); err != nil {
				t.Errorf("restore after a killed one: %v: %s", err, out)
			}
		}
		if err := os.CopyFS(filepath.Join(dir, "pki"), os.DirFS(filepath.Join(s.DataDir, "pki"))); err != nil {
			t.Fatal(err)
		}
		found := kit.StartServer(t, dir)
		if got := found.MustShell(t, "kubectl get configmaps --no-headers | grep -c ^big-"); got != "40\n" {
			t.Errorf("%s of 40 objects", got)
		}
		if err := found.Stop(); err != nil {
			t.Error(err)
		}
	}
	t.Logf("%d restores were killed, of which %d left no store", interrupted, empty)
}

const (
	// maxRestore is about what a restore of a backup takes. A restore that is faster or slower is killed at other moments.
	maxRestore = 200 * time.Millisecond
	// restoredLast is more than the end of a backup, without which it is whole, in bytes.
	restoredLast = 64 << 10
)

// feed starts a command and writes to its standard input, which stays open.
func feed(t *testing.T, cmd *exec.Cmd, data []byte) {
	t.Helper()
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err == nil {
		_, err = io.Copy(in, bytes.NewReader(data))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestServerIgnoresHalfARestore: a server ignores what a killed restore leaves behind.
func TestServerIgnoresHalfARestore(t *testing.T) {
	s := kit.StartServer(t, t.TempDir())
	fill(t, t.Context(), newClient(t, s.Kubeconfig))
	whole := []byte(s.MustShell(t, "platform backup - 2>/dev/null"))
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), kit.Bin(t, "platform"), "restore", "-", "--data-dir", dir)
	feed(t, cmd, whole[:len(whole)/2])
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	if _, err := os.Stat(filepath.Join(dir, "store")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("there is a store: %v", err)
	}
	fresh := kit.StartServer(t, dir)
	if got := fresh.MustShell(t, "kubectl get configmaps -o name"); strings.Contains(got, "big-") {
		t.Errorf("the server opened %s", got)
	}
	if r := fresh.Shell(t, "platform restore "+filepath.Join(dir, "none.tar")+" --data-dir "+dir); r.Code != 1 {
		t.Errorf("restore of no file: %+v", r)
	}
}
