// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package eventlogtest

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
)

// Random runs as many steps of random commands, drawn from seed.
// The guarantees are checked after each command. On failure it prints the script so far, which can then be
// added to testdata.
func Random(t *testing.T, seed uint64, steps int) {
	d := New(t)
	rng := rand.New(rand.NewPCG(seed, 1))
	g := &generator{rng: rng, uids: map[string]int{}, watches: map[string]bool{}}
	var script strings.Builder
	run := func(c Command) {
		t.Helper()
		out, err := d.Exec(c)
		fmt.Fprintf(&script, "%s\n----\n%s\n", c, out)
		if err != nil {
			t.Fatalf("seed %d: %v\n\n%s", seed, err, script.String())
		}
	}
	for range steps {
		for _, c := range g.next() {
			run(c)
		}
	}
	// Every watch that is still open gets everything.
	for name, r := range d.readers {
		run(Command{Name: "resume", Args: []Arg{{Key: name}}})
		if r.tail {
			continue // checked for order; it ends with its stream
		}
		if missing := len(r.expected(&d.model)) - r.changes(); missing > 0 && !r.hasEnded() {
			if _, _, err := r.recvChanges(len(r.expected(&d.model))); err != nil {
				t.Fatalf("seed %d: reader %s (%+v from %d) misses %d changes: %v\n\n%s", seed, name, r.query, r.from, missing, err, script.String())
			}
		}
	}
	run(Command{Name: "walk", Args: []Arg{{"ns", "*"}, {"limit", "7"}}})
}

// generator draws random commands.
type generator struct {
	rng     *rand.Rand
	uids    map[string]int // incarnation by task
	watches map[string]bool
	number  int
}

func (g *generator) pick(list ...string) string { return list[g.rng.IntN(len(list))] }

func (g *generator) chance(percent int) bool { return g.rng.IntN(100) < percent }

func (g *generator) task() string { return g.pick("a", "b", "c", "d", "e", "f", "g", "h") }

func (g *generator) line(task string) string {
	typ := g.pick("ToolCallStarted", "ToolCallCompleted", "ModelRequestStarted", "ModelRequestCompleted", "TaskStarted", "WorkerStarted")
	if g.chance(6) {
		typ = g.pick("TaskSucceeded", "TaskFailed", "TaskCancelled")
	}
	if g.chance(8) {
		typ = g.pick("TaskForkRequested", "TaskForkCreated", "GatewayDeliveryCompleted")
	}
	line := fmt.Sprintf("%s task=%s uid=%s", typ, task, g.uid(task))
	switch task {
	case "a", "b", "c":
		line += " session=s"
	case "d", "e":
		line += " session=t ns=other"
	}
	if g.chance(30) {
		line += fmt.Sprintf(" key=k%d", g.rng.IntN(6))
	}
	if g.chance(40) {
		line += " severity=" + g.pick("debug", "warning", "error")
	}
	return line
}

func (g *generator) uid(task string) string { return fmt.Sprintf("%s-%d", task, g.uids[task]) }

func (g *generator) lines(n int, task func() string) string {
	var b strings.Builder
	for range n {
		b.WriteString(g.line(task()) + "\n")
	}
	return b.String()
}

// stream returns the arguments that name the current stream of a task.
func (g *generator) stream(task string) []Arg {
	args := []Arg{{"task", task}, {"uid", g.uid(task)}}
	if task == "d" || task == "e" {
		args = append(args, Arg{"ns", "other"})
	}
	return args
}

// filter draws the arguments of a query.
func (g *generator) filter() []Arg {
	args := []Arg{{"ns", g.pick("default", "default", "other", "*")}}
	if g.chance(30) {
		args = append(args, Arg{"task", g.task()})
	}
	if g.chance(25) {
		args = append(args, Arg{"session", g.pick("s", "t")})
	}
	if g.chance(25) {
		args = append(args, Arg{"type", g.pick("ToolCallStarted", "TaskFailed,ToolCallCompleted")})
	}
	if g.chance(25) {
		args = append(args, Arg{"severity", g.pick("error", "debug,info")})
	}
	return args
}

// next draws a step: one command, or a few that belong together.
func (g *generator) next() []Command {
	one := func(name string, args ...Arg) []Command { return []Command{{Name: name, Args: args}} }
	switch n := g.rng.IntN(100); {
	case n < 35:
		return []Command{{Name: "append", Input: g.lines(1+g.rng.IntN(4), g.task)}}
	case n < 48:
		task := g.task()
		return []Command{{Name: "batch", Input: g.lines(1+g.rng.IntN(8), func() string { return task })}}
	case n < 52:
		task := g.task()
		args := g.stream(task)
		g.uids[task]++
		return one("delete", args...)
	case n < 56:
		task := g.task()
		return one("trim", append(g.stream(task), Arg{"before", g.pick("2", "4", "9", "1000")})...)
	case n < 58:
		g.uids[g.task()]++ // its next event replaces the stream
		return nil
	case n < 66:
		return one("walk", append(g.filter(), Arg{"limit", g.pick("1", "3", "10")})...)
	case n < 72:
		task := g.task()
		return one("page", Arg{"task", task}, Arg{"uid", g.uid(task)}, Arg{"after", g.pick("0", "1", "5")}, Arg{"limit", "3"})
	case n < 82:
		return g.reader()
	case n < 86:
		return one("reopen")
	case n < 90:
		return one("crash", Arg{"unsynced", g.pick("0", "30", "100")}, Arg{"seed", strconv.Itoa(g.rng.IntN(1000))})
	case n < 92:
		change := Command{Name: "append", Input: g.lines(1, g.task)}
		if g.chance(30) {
			change = Command{Name: "trim", Args: append(g.stream(g.task()), Arg{"before", g.pick("2", "5", "1000")})}
		}
		return []Command{
			{Name: "fault"},
			change,
			{Name: "crash", Args: []Arg{{"unsynced", g.pick("0", "50", "100")}, {"seed", strconv.Itoa(g.rng.IntN(1000))}}},
		}
	case n < 95:
		return []Command{{Name: "clock", Args: []Arg{{Key: g.pick("30s", "3m", "6m")}}}, {Name: "purge"}}
	case n < 97:
		g.watches = map[string]bool{}
		return one("options", Arg{"queue", g.pick("1", "5", "100")}, Arg{"cache", g.pick("1", "100")}, Arg{"budget", g.pick("2", "20", "1000")})
	}
	return one("floor")
}

// tail draws the arguments of a tail.
func (g *generator) tail(name string) []Arg {
	args := []Arg{{Key: name}, {"after", g.pick("0", "0", "3")}}
	if g.chance(30) {
		args = append(args, Arg{Key: "slow"})
	}
	switch g.rng.IntN(3) {
	case 0:
		return append(args, Arg{"session", "s"})
	case 1:
		return append(args, Arg{"session", "t"}, Arg{"ns", "other"})
	}
	return append(args, g.stream(g.task())...)
}

// reader draws a step of a watch.
func (g *generator) reader() []Command {
	if len(g.watches) < 4 || g.chance(40) {
		g.number++
		name := fmt.Sprintf("w%d", g.number)
		g.watches[name] = true
		if g.chance(30) {
			return []Command{{Name: "tail", Args: g.tail(name)}}
		}
		args := append([]Arg{{Key: name}}, g.filter()...)
		switch g.rng.IntN(4) {
		case 0:
			args = append(args, Arg{"initial", "true"}, Arg{Key: "bookmarks"})
		case 1:
			args = append(args, Arg{"rev", strconv.Itoa(1 + g.rng.IntN(60))})
		case 2:
			args = append(args, Arg{"initial", "false"})
		}
		if g.chance(30) {
			args = append(args, Arg{Key: "slow"})
		}
		return []Command{{Name: "watch", Args: args}}
	}
	return nil
}
