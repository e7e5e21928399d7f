// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// marked finds the texts that a generator makes.
var marked = regexp.MustCompile(`T[0-9a-f]{16}`)

var bodies = flag.Int("bodies", 1000, "random requests, each with a random answer, in TestUnknownMembers; with another number than this they are new ones each time")

// TestUnknownMembers sends random requests with unknown members, thinking and its signatures, parallel calls and images to every
// endpoint, directly and through the router, streamed or not, and has each answered at random. A Provider of the same protocol
// gets the bytes of the client but for the model's name, and the client gets its bytes. A Provider of the other protocol gets
// every text that the client sent but what a model thought, or the client gets 400 and the Provider nothing.
func TestUnknownMembers(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.namespace("team")
	var planned, arrived sync.Map // by number: the answer, and the body that the vendor got
	v := newVendor(t, nil)
	v.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		number := string(numbered.FindSubmatch(body)[1])
		arrived.Store(number, string(body))
		plan, _ := planned.Load(number)
		plan.(func(http.ResponseWriter, *http.Request))(w, r)
	})
	s.provider("team", "default", v1alpha1.ProviderOpenAI, v.URL+"/v1", "m")
	s.provider("team", "claude", v1alpha1.ProviderAnthropic, v.URL, "c")
	token, bases := s.Token(t, "team", "client", "chat"), [2]string{s.RESTURL, s.routerHere()}
	seed := uint64(1)
	if *bodies != 1000 {
		seed = rand.Uint64()
	}
	var next, same, translated, refused atomic.Int64
	check := func(n int) {
		number := strconv.Itoa(n)
		g := generator{rand.New(rand.NewPCG(seed, uint64(n)))}
		e := randomEndpoints[g.IntN(len(randomEndpoints))]
		stream := !e.whole && g.IntN(2) == 0
		body := e.request(g, number, stream)
		reply, send := g.reply(stream)
		if e.translates {
			send = func(w http.ResponseWriter, r *http.Request) { answer(w, r.URL.Path, stream, complete, 1) }
		}
		planned.Store(number, send)
		defer planned.Delete(number)
		code, got := post(t, bases[g.IntN(2)]+e.path, body, token)
		at, reached := arrived.LoadAndDelete(number)
		switch {
		case e.translates && code == http.StatusBadRequest && !reached && strings.Contains(got, "invalid_request_error"):
			refused.Add(1)
		case e.translates && code == http.StatusOK:
			translated.Add(1)
			for _, text := range marked.FindAllString(body, -1) {
				if !strings.Contains(at.(string), text) {
					t.Errorf("seed %d, %d: %s: %q was dropped from %s: %s", seed, n, e.path, text, body, at)
				}
			}
		case e.translates:
			t.Errorf("seed %d, %d: %s: %s is answered %d %s", seed, n, e.path, body, code, got)
		case code != http.StatusOK || got != reply:
			t.Errorf("seed %d, %d: %s: %s is answered %d\n%s\nnot\n%s", seed, n, e.path, body, code, got, reply)
		case at != strings.Replace(body, e.model, e.model[strings.Index(e.model, "/")+1:], 1):
			t.Errorf("seed %d, %d: %s: %s became %s", seed, n, e.path, body, at)
		default:
			same.Add(1)
		}
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for n := int(next.Add(1)); n <= *bodies && !t.Failed(); n = int(next.Add(1)) {
				check(n)
			}
		})
	}
	all.Wait()
	t.Logf("seed %d: %d passed unchanged in both directions, %d were translated and %d refused", seed, same.Load(), translated.Load(), refused.Load())
	if same.Load() == 0 || translated.Load() == 0 || refused.Load() == 0 {
		t.Error("the bodies reach nothing")
	}
}

// post sends a body and returns the answer.
func post(t *testing.T, url, body, token string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(context.Background(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("X-Platform-Tools", "disabled")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Error(err)
	}
	return resp.StatusCode, string(data)
}

// randomEndpoint is an endpoint with a Provider.
type randomEndpoint struct {
	path, model string
	translates  bool // the Provider has the other protocol
	whole       bool // there are no streams
}

var randomEndpoints = []randomEndpoint{
	{path: "/openai/v1/chat/completions", model: "default/m"},
	{path: "/openai/v1/responses", model: "default/m"},
	{path: "/anthropic/v1/messages", model: "claude/m"},
	{path: "/anthropic/v1/messages/count_tokens", model: "claude/m", whole: true},
	{path: "/openai/v1/chat/completions", model: "claude/m", translates: true},
	{path: "/openai/v1/responses", model: "claude/m", translates: true},
	{path: "/anthropic/v1/messages", model: "default/m", translates: true},
}

// generator makes random JSON. No member occurs twice.
type generator struct{ *rand.Rand }

// text returns a text that no other one contains, with characters that JSON escapes in several ways.
func (g generator) text() string {
	return fmt.Sprintf(`"T%016x%s"`, g.Uint64(), []string{"", `\n`, `\u00e9`, "é", `\/`, `\ud83d\ude00`, "  ", `\\`}[g.IntN(8)])
}

// thought returns a text that another model need not get.
func (g generator) thought() string { return strings.Replace(g.text(), "T", "H", 1) }

// value returns any value.
func (g generator) value(depth int) string {
	switch k := g.IntN(9); {
	case k < 2 || depth > 3:
		return g.text()
	case k < 4:
		return []string{"1.50", "1e2", "-0", "9007199254740993", "1E+400", "true", "null", "[ ]", "{ }", `""`}[g.IntN(10)]
	case k < 6:
		return "[" + strings.Join(g.several(3, func() string { return g.value(depth + 1) }), " , ") + "]"
	default:
		return g.object(g.several(3, func() string { return fmt.Sprintf(`"u%x": %s`, g.Uint64(), g.value(depth+1)) })...)
	}
}

// several returns up to n texts, each made by next.
func (g generator) several(n int, next func() string) (all []string) {
	for range g.IntN(n + 1) {
		all = append(all, next())
	}
	return all
}

// object returns an object with the members in any order and with any white space.
func (g generator) object(members ...string) string {
	g.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
	space := []string{"", " ", "\n\t"}[g.IntN(3)]
	return "{" + space + strings.Join(members, ","+space) + space + "}"
}

// unknown returns up to n unknown members; often none, so that some bodies can be translated.
func (g generator) unknown(n int) []string {
	if g.IntN(3) > 0 {
		return nil
	}
	return g.several(n, func() string { return fmt.Sprintf(`"future_%x":%s`, g.Uint32(), g.value(0)) })
}

// thing returns an object with the members and unknown ones.
func (g generator) thing(members ...string) string {
	return g.object(append(members, g.unknown(2)...)...)
}

// one returns one of the texts.
func (g generator) one(of ...string) string { return of[g.IntN(len(of))] }

// rarely returns the members, or more often none.
func (g generator) rarely(members ...string) []string {
	if g.IntN(4) > 0 {
		return nil
	}
	return members
}

func (e randomEndpoint) request(g generator, number string, stream bool) string {
	first := `"#` + number + `#"`
	members := append([]string{fmt.Sprintf(`"model":%q`, e.model)}, g.unknown(3)...)
	switch e.path {
	case "/openai/v1/responses":
		items := []string{g.thing(`"role":"user"`, `"content":`+first)}
		items = append(items, g.several(4, func() string {
			return g.one(
				g.object(`"type":"reasoning"`, `"summary":[]`, `"encrypted_content":`+g.thought()),
				g.thing(`"type":"function_call"`, `"call_id":"c1"`, `"name":"f"`, `"arguments":"{}"`), g.thing(`"type":"function_call_output"`, `"call_id":"c1"`, `"output":`+g.text()),
				g.thing(`"role":"user"`, `"content":[`+g.thing(`"type":"input_image"`, `"image_url":"data:image/png;base64,AA=="`)+`]`),
			)
		})...)
		members = append(members, `"store":false`, `"input":[`+strings.Join(items, ",")+`]`)
		members = append(members, g.rarely(`"parallel_tool_calls":true`, `"include":["reasoning.encrypted_content"]`)...)
	case "/openai/v1/chat/completions":
		members = append(members, `"messages":[`+strings.Join(g.chat(first), ",")+`]`)
		members = append(members, g.rarely(`"parallel_tool_calls":true`, `"seed":7`)...)
		if stream {
			members = append(members, `"stream_options":`+g.object(`"include_usage":true`))
		}
	default:
		members = append(members, `"max_tokens":64`, `"messages":[`+strings.Join(g.messages(first), ",")+`]`)
		members = append(members, g.rarely(`"thinking":`+g.object(`"type":"enabled"`, `"budget_tokens":1024`), `"system":[`+g.thing(`"type":"text"`, `"text":`+g.text())+`]`)...)
	}
	if stream {
		members = append(members, `"stream":true`)
	}
	return g.object(members...)
}

// chat returns messages of a chat completion.
func (g generator) chat(first string) []string {
	all := []string{g.thing(`"role":"user"`, `"content":`+first)}
	return append(all, g.several(3, func() string {
		call := func(id string) string {
			return g.thing(`"id":"`+id+`"`, `"type":"function"`, `"function":`+g.thing(`"name":"f"`, `"arguments":"{}"`))
		}
		image := g.thing(`"type":"image_url"`, `"image_url":`+g.thing(`"url":"data:image/png;base64,AA=="`))
		return g.one(
			g.thing(`"role":"user"`, `"content":`+g.text()), g.thing(`"role":"assistant"`, `"content":`+g.text())+","+g.thing(`"role":"user"`, `"content":`+g.text()),
			g.thing(`"role":"assistant"`, `"content":`+g.one("null", g.text()), `"tool_calls":[`+call("a")+","+call("b")+`]`)+","+
				g.thing(`"role":"tool"`, `"tool_call_id":"a"`, `"content":`+g.text())+","+g.thing(`"role":"tool"`, `"tool_call_id":"b"`, `"content":`+g.text()),
			g.thing(`"role":"user"`, `"content":[`+g.thing(`"type":"text"`, `"text":`+g.text())+strings.Join(g.rarely(","+image), "")+`]`),
		)
	})...)
}

// messages returns messages of the messages API.
func (g generator) messages(first string) []string {
	all := []string{g.thing(`"role":"user"`, `"content":`+first)}
	return append(all, g.several(3, func() string {
		call := func(id string) string {
			return g.thing(`"type":"tool_use"`, `"id":"`+id+`"`, `"name":"f"`, `"input":`+g.one("{}", g.object(`"x":1.50`)))
		}
		result := func(id string) string {
			return g.thing(`"type":"tool_result"`, `"tool_use_id":"`+id+`"`, `"content":`+g.text())
		}
		thinking := g.one(g.object(`"type":"thinking"`, `"thinking":`+g.thought(), `"signature":`+g.thought()), g.object(`"type":"redacted_thinking"`, `"data":`+g.thought()))
		image := g.thing(`"type":"image"`, `"source":`+g.thing(`"type":"base64"`, `"media_type":"image/png"`, `"data":"AA=="`))
		return g.one(
			g.thing(`"role":"user"`, `"content":`+g.text()),
			g.thing(`"role":"assistant"`, `"content":[`+strings.Join(append(g.rarely(thinking), g.thing(`"type":"text"`, `"text":`+g.text())), ",")+`]`)+","+g.thing(`"role":"user"`, `"content":`+g.text()),
			g.thing(`"role":"assistant"`, `"content":[`+strings.Join(append(g.rarely(thinking), call("a"), call("b")), ",")+`]`)+","+
				g.thing(`"role":"user"`, `"content":[`+strings.Join(append([]string{result("a"), result("b")}, g.rarely(image)...), ",")+`]`),
		)
	})...)
}

// reply returns an answer and a func that sends it. It is cut at a random place.
func (g generator) reply(stream bool) (string, func(http.ResponseWriter, *http.Request)) {
	body, kind := g.thing(`"usage":`+g.thing(`"input_tokens":1`, `"output_tokens":2`, `"prompt_tokens":1`, `"completion_tokens":2`), `"signature":`+g.text(), `"choices":[{}]`, `"output":[]`, `"content":[]`, `"input_tokens":1`), jsonKind
	if stream {
		kind, body = eventKind, ""
		for range 1 + g.IntN(6) {
			data := strings.ReplaceAll(g.thing(`"type":`+g.text(), `"choices":`+g.one("[]", "["+g.thing(`"delta":`+g.thing())+"]"), `"signature":`+g.text()), "\n", " ")
			body += g.one("", "event: ping\n", ": comment\n", "event: "+strconv.Itoa(g.IntN(9))+"\n") + "data: " + data + "\n\n"
		}
		body += `data: {"type":"response.completed","choices":[]}` + "\n\n" // what has no end has failed
	}
	cut := g.IntN(len(body))
	return body, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		_, _ = io.WriteString(w, body[:cut])
		_ = http.NewResponseController(w).Flush()
		_, _ = io.WriteString(w, body[cut:])
	}
}
