// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package eventlogtest drives an event log with scripts and checks the guarantees
// of package eventlog after every command.
//
// A script is a file of datadriven commands; the same language is what Random
// writes. Events are lines of input: a type and key=value fields.
//
//	append | batch            one commit per line | one commit of all lines
//	append times=N            one commit of N copies of the line
//	    TaskStarted task=a session=s key=k severity=error ns=n uid=u summary=x
//	dedup                     every line twice; the second must be the first
//	delete task=a uid=u       delete a stream
//	trim task=a before=N      remove its events below N
//	list task= session= type= severity= ns= name= limit= rev= [exact] [continue]
//	walk …                    list, page by page
//	page task=a after=N limit=N type=      by seq
//	timeline session=s after=N limit=N     by session cursor
//	get name=a.0000000001 | head task=a
//	watch w task= … [rev=N] [initial=true] [bookmarks]
//	recv w n=N                the next N events that w received; without n, all until
//	                          its end, or with the word last the last of them
//	slow w | resume w | stop w             w pauses or resumes reading, or ends
//	tail w task=a after=N | session=s after=N   and recv w
//	clock 90s | floor
//	purge [uncounted]         uncounted: do not print how much was purged, which varies
//	crash unsynced=N seed=N   the power fails, and the store is opened again
//	reopen                    closed and opened again
//	fault                     the next sync of the log's journal fails
//	options queue=N lag=N cache=N budget=N window=D   of the next opening
//
// A stream is named by its task; its UID is the task name and "-1" unless uid says
// otherwise, its namespace "default".
package eventlogtest

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/platform-ai/platform/pkg/storage/engine"
	"github.com/platform-ai/platform/pkg/storage/engine/local"
	"github.com/platform-ai/platform/pkg/storage/engine/local/localtest"
	"github.com/platform-ai/platform/pkg/storage/eventlog"
)

// wait only ends a command that would hang: it is far above what an expected event takes on a busy machine.
const wait = 5 * time.Minute

// Driver runs commands against a log on a disk in memory.
type Driver struct {
	t      testing.TB
	disk   *localtest.Disk
	clock  *clocktesting.FakeClock
	opts   eventlog.Options
	engine engine.Engine
	log    *eventlog.Log
	tally  *tally
	fatal  atomic.Pointer[error] // the engine's error when its disk failed

	faulty bool              // the disk was made to fail
	unsure []eventlog.Stream // streams with changes whose outcome is not known

	model   model
	readers map[string]*reader
	token   string // of the last list
	query   eventlog.Query
}

// New returns a driver of an empty store. It is closed with the test.
func New(t testing.TB) *Driver {
	d := &Driver{
		t:     t,
		disk:  localtest.NewDisk(),
		clock: clocktesting.NewFakeClock(time.Date(2026, 11, 21, 4, 0, 0, 0, time.UTC)),
		opts:  eventlog.Options{PurgeInterval: -1},
	}
	d.model.init()
	d.readers = map[string]*reader{}
	if err := d.open(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.close(); err != nil && d.fatal.Load() == nil && !d.faulty {
			t.Errorf("close: %v", err)
		}
	})
	return d
}

func (d *Driver) open() error {
	var err error
	d.engine, err = local.Open(d.t.Context(), local.Options{
		Dir: localtest.Dir, FS: d.disk.FS(), OnFatal: func(err error) { d.fatal.Store(&err) },
	})
	if err != nil {
		return err
	}
	d.tally = &tally{engine: d.engine, counts: map[string]uint64{}}
	d.opts.Clock, d.opts.Projections = d.clock, []eventlog.Projection{d.tally}
	d.log, err = eventlog.Open(d.t.Context(), d.engine, d.opts)
	return err
}

// close ends readers, log and engine.
func (d *Driver) close() error {
	for name, r := range d.readers {
		r.stop()
		delete(d.readers, name)
	}
	return errors.Join(d.log.Close(), d.engine.Close())
}

// Exec runs one command and returns its output. It returns an error if an invariant no longer holds. An
// error that the log returned is part of the output.
func (d *Driver) Exec(c Command) (string, error) {
	run, ok := commands[c.Name]
	if !ok {
		return "", fmt.Errorf("no command %q", c.Name)
	}
	out, err := run(d, c)
	if err != nil {
		return "", fmt.Errorf("%s: %w", c.Name, err)
	}
	if err := d.check(); err != nil {
		return "", fmt.Errorf("after %s: %w\noutput:\n%s", c, err, out)
	}
	return out, nil
}

// commands by name. They return errors in the script; errors of the log are output.
var commands = map[string]func(*Driver, Command) (string, error){
	"append": appendLines, "batch": appendBatch, "dedup": appendTwice, "delete": deleteStream,
	"trim": trim,
	"list": list, "walk": walk, "page": page, "timeline": timeline, "get": get, "head": head,
	"watch": watchEvents, "tail": tail, "recv": recv, "slow": slow, "resume": resume, "stop": stop,
	"clock": step, "purge": purge, "floor": floor,
	"crash": crash, "reopen": reopen, "fault": fault, "options": options,
}

// Command is one command of a script.
type Command struct {
	Name  string
	Args  []Arg
	Input string
}

// Arg is a word or a key=value of a command.
type Arg struct{ Key, Value string }

// Get returns the value of an argument, or def.
func (c Command) Get(key, def string) string {
	for _, a := range c.Args {
		if a.Key == key {
			return a.Value
		}
	}
	return def
}

// Has reports whether a word was given.
func (c Command) Has(key string) bool {
	for _, a := range c.Args {
		if a.Key == key {
			return true
		}
	}
	return false
}

// word returns the first word that has no value.
func (c Command) word() string {
	for _, a := range c.Args {
		if a.Value == "" {
			return a.Key
		}
	}
	return ""
}

// String returns the command as written in a script.
func (c Command) String() string {
	var b strings.Builder
	b.WriteString(c.Name)
	for _, a := range c.Args {
		b.WriteString(" " + a.Key)
		switch {
		case strings.Contains(a.Value, ","):
			b.WriteString("=(" + a.Value + ")")
		case a.Value != "":
			b.WriteString("=" + a.Value)
		}
	}
	if c.Input != "" {
		b.WriteString("\n" + strings.TrimSuffix(c.Input, "\n"))
	}
	return b.String()
}

// said turns an error of the log into output.
func said(err error) string {
	switch {
	case err == nil:
		return "ok\n"
	case errors.Is(err, engine.ErrFailed):
		return "error: store failed\n"
	}
	return "error: " + err.Error() + "\n"
}
