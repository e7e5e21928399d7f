// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package eventbench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/bench/report"
)

const (
	rowDiskLog       = "disk, event of 1 KiB of build log"
	rowDiskContent   = "disk, the same beside its content"
	rowDiskPlain     = "disk, event of 1 KiB of random letters"
	rowReaderTask    = "appends, a reader of pages of 1,000 loops"
	rowReaderSession = "appends, a reader of a session loops"
	rowTails         = "append to 1,000 open tails, p50"
	rowTailsIdle     = "1,000 idle tails, of a core"
)

// logText returns n bytes of text as a build prints it, different each time.
func logText(r *rand.Rand, n int) string {
	var b strings.Builder
	for b.Len() < n {
		switch r.IntN(3) {
		case 0:
			fmt.Fprintf(&b, "go: downloading example.org/lib%d/mod%d v%d.%d.%d\n", r.IntN(90), r.IntN(900), r.IntN(9), r.IntN(40), r.IntN(20))
		case 1:
			fmt.Fprintf(&b, "ok  \texample.org/app/pkg/part%d\t%d.%03ds\n", r.IntN(300), r.IntN(60), r.IntN(1000))
		default:
			fmt.Fprintf(&b, "/src/app/pkg/part%d/file%d.go:%d:%d: undefined: name%d\n", r.IntN(300), r.IntN(40), r.IntN(900), r.IntN(80), r.IntN(5000))
		}
	}
	return b.String()[:n]
}

// letters returns n bytes that hardly compress.
func letters(r *rand.Rand, n int) string {
	b := make([]byte, n)
	for i := range b {
		if b[i] = byte('a' + r.IntN(26)); r.IntN(6) == 0 {
			b[i] = ' '
		}
	}
	return string(b)
}

// kib is an event with 1 KiB of JSON content around a text.
func kib(r *rand.Rand, text func(*rand.Rand, int) string) (*v1alpha1.ExecutionEvent, error) {
	const around = len(`{"text":""}`)
	raw, err := json.Marshal(map[string]string{"text": strings.NewReplacer("\n", " ", "\t", " ").Replace(text(r, 1024-around))})
	return &v1alpha1.ExecutionEvent{
		Type: v1alpha1.EventModelMessage, Summary: "the model answered in thirty-nine bytes",
		Content: &apiextensionsv1.JSON{Raw: raw},
	}, err
}

// disk measures the bytes that an event of 1 KiB takes in the files of a store that
// was closed and opened again, journals not counted.
func disk(ctx context.Context, b *bench) error {
	const n, tasks = 100_000, 50
	for _, row := range []struct {
		name string
		text func(*rand.Rand, int) string
	}{{rowDiskLog, logText}, {rowDiskPlain, letters}} {
		before, err := b.bytes(ctx)
		if err != nil {
			return err
		}
		r := rand.New(rand.NewPCG(1, 2))
		for from := range tasks {
			var bad error
			err := b.fill(ctx, stream(from, ""), n/tasks, func(int) *v1alpha1.ExecutionEvent {
				e, err := kib(r, row.text)
				bad = errors.Join(bad, err)
				return e
			})
			if err := errors.Join(err, bad); err != nil {
				return err
			}
		}
		after, err := b.bytes(ctx)
		if err != nil {
			return err
		}
		size := float64(after-before) / n
		if err := b.add(row.name, "bytes", report.Lower, size, 1592, peer); err != nil {
			return err
		}
		if row.name != rowDiskLog {
			continue
		}
		if err := b.add(rowDiskContent, "bytes", report.Lower, size, 1024, aim); err != nil {
			return err
		}
	}
	return nil
}

// bytes restarts the store, which writes out what is in memory, and adds up its files.
func (b *bench) bytes(ctx context.Context) (total int64, err error) {
	if err := errors.Join(b.close(), b.open(ctx)); err != nil {
		return 0, err
	}
	err = filepath.WalkDir(b.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(path, ".log") {
			return err
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil // compacted away
		}
		if err == nil {
			total += info.Size()
		}
		return err
	})
	return total, err
}

// readers measures how much one looping reader slows down one writer, compared with
// a loop that decodes JSON and never touches the log. The latter is the share of
// the processor and of the garbage collector that any code takes that makes objects.
func readers(ctx context.Context, b *bench) error {
	r := rand.New(rand.NewPCG(3, 4))
	event, err := kib(r, logText)
	if err != nil {
		return err
	}
	const session = "s"
	read := stream(0, session)
	if err := b.fill(ctx, read, 100_000, short); err != nil {
		return err
	}
	page, err := b.log.TaskPage(ctx, read, 0, 100, nil)
	if err != nil {
		return err
	}
	encoded, err := json.Marshal(page.Events)
	if err != nil {
		return err
	}
	busy := func() error {
		var events []*v1alpha1.ExecutionEvent
		return json.Unmarshal(encoded, &events)
	}
	for _, row := range []struct {
		name   string
		reader func() error
	}{
		{rowReaderTask, func() error { _, err := b.log.TaskPage(ctx, read, 50_000, 1000, nil); return err }},
		{rowReaderSession, func() error {
			_, err := b.log.SessionPage(ctx, "default", session, 50_000, 100, nil)
			return err
		}},
	} {
		var beside [2][]float64 // the reader and the loop take turns, as a machine's speed drifts
		for range 5 {
			for i, f := range []func() error{row.reader, busy} {
				rate, err := b.appends(ctx, event, f)
				if err != nil {
					return err
				}
				beside[i] = append(beside[i], rate)
			}
		}
		slices.Sort(beside[0])
		slices.Sort(beside[1])
		if err := b.add(row.name, "events/s", report.Higher, beside[0][2], beside[1][2], "JSON loop"); err != nil {
			return err
		}
	}
	return nil
}

// appends returns how many events one writer appends a second while f loops.
func (b *bench) appends(ctx context.Context, event *v1alpha1.ExecutionEvent, f func() error) (float64, error) {
	stop, done := make(chan struct{}), make(chan error, 1)
	go func() {
		var err error
		for err == nil {
			select {
			case <-stop:
				done <- nil
				return
			default:
				err = f()
			}
		}
		done <- err
	}()
	n, from := 0, time.Now()
	var err error
	for err == nil && time.Since(from) < b.o.Window/5 {
		_, err = b.log.Append(ctx, stream(1, ""), []*v1alpha1.ExecutionEvent{event})
		n++
	}
	rate := float64(n) / time.Since(from).Seconds()
	close(stop)
	return rate, errors.Join(err, <-done)
}

// tails measures 1,000 open tails of 50 tasks: the time from an append to its
// delivery to all tails of its task, and the processor time while nothing happens.
func tails(ctx context.Context, b *bench) error {
	const open, tasks = 1000, 50
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	var got atomic.Int64
	all := make(chan struct{}, 1)
	for i := range open {
		t, err := b.log.TailTask(stream(i%tasks, ""), 0, nil)
		if err != nil {
			return err
		}
		wg.Go(func() {
			defer t.Close()
			for {
				p, err := t.Next(ctx)
				if err != nil {
					return
				}
				if got.Add(int64(len(p.Events)))%(open/tasks) == 0 && len(p.Events) > 0 {
					all <- struct{}{}
				}
			}
		})
	}
	i := 0
	took, err := b.micros(func() error {
		i++
		if _, err := b.log.Append(ctx, stream(i%tasks, ""), []*v1alpha1.ExecutionEvent{short(i)}); err != nil {
			return err
		}
		<-all
		return nil
	})
	if err != nil {
		return err
	}
	before, err := cpu()
	if err != nil {
		return err
	}
	from := time.Now()
	select {
	case <-time.After(b.o.Window):
	case <-ctx.Done():
	}
	after, err := cpu()
	if err != nil {
		return err
	}
	if err := b.add(rowTails, "us", report.Lower, took, 940_000, peer); err != nil {
		return err
	}
	return b.add(rowTailsIdle, "%", report.Lower, 100*(after-before).Seconds()/time.Since(from).Seconds(), 12.5, peer)
}

// cpu returns the processor time of this process.
func cpu() (time.Duration, error) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, err
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), nil
}
