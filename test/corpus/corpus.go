// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package corpus makes texts for tests of redaction: secrets of every known form,
// none of them real, in the surroundings in which they occur, and texts that look
// like secrets but are not. Everything is made at run time from a fixed seed, so
// that the repository contains no literal that looks like a secret.
package corpus

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
)

// Canary is a secret that must be found nowhere after redaction.
type Canary struct {
	// Name describes the secret.
	Name string
	// Text is the secret as it is written, with as much context as it takes to recognise it.
	Text string
	// Secrets are the parts of Text that must not survive.
	Secrets []string
	// Bare reports that Text is a token that can be recognised without any context.
	Bare bool
	// split is where a bare token may be broken into two lines; 0 means nowhere.
	split int
}

// Embedding is a canary in the surroundings of a text or of a JSON value.
type Embedding struct {
	Name string
	Text string
	// JSON reports that Text is one JSON value.
	JSON bool
	// Needles are the byte strings that must not survive.
	Needles []string
}

// Embeddings returns the surroundings in which the canary must be recognised.
func (c Canary) Embeddings() []Embedding {
	t := c.Text
	lines := strings.Contains(t, "\n")
	all := []Embedding{
		c.text("lines", "This is what the command printed:\n"+t+"\nThat was all.\n"),
		c.text("markdown", "```\n"+t+"\n```\n"),
		c.json("JSON value", map[string]any{"note": t}),
		c.json("JSON array", []any{"a", map[string]any{"lines": []string{"first", t, "last"}}}),
		c.json("tool arguments", map[string]any{"name": "code_exec", "arguments": map[string]any{"language": "bash", "code": "set -e\n" + t + "\necho done"}}),
		c.text("JSON as text", `got {"level":"info","message":`+quoted(t)+`,"n":1} from it`),
		c.text("diff", "@@ -1,2 +1,9 @@\n first\n+"+strings.ReplaceAll(t, "\n", "\n+")+"\n last\n"),
		c.json("tool arguments as a string", map[string]any{"function": map[string]any{"arguments": quoted(map[string]any{"path": "a.txt", "content": t})}}),
	}
	if !lines {
		all = append(all,
			c.text("log line", "2026-11-21T04:12:07.123Z INFO worker: output "+t))
	}
	if c.Bare {
		all = append(all, c.bare()...)
	}
	return all
}

func (c Canary) bare() []Embedding {
	t := c.Text
	all := []Embedding{
		c.text("prose", "I found "+t+" in the file."),
		c.text("end of a sentence", "What I found was "+t+"."),
		c.text("quoted", "It says '"+t+"', or \""+t+"\", or `"+t+"`, or <"+t+">, ("+t+")."),
		c.text("list", "one,"+t+",two;"+t+";three"),
		c.json("JSON under a telling key", map[string]any{"api_key": t, "nested": map[string]any{"Access-Token": t}}),
		c.json("JSON key", map[string]any{t: 1}),
		c.text("header", "GET / HTTP/1.1\r\nX-Custom: "+t+"\r\nAccept: */*\r\n"),
		c.text("authorization header", "Authorization: Bearer "+t+"\nAccept: */*\n"),
		c.text("URL user info", "git clone https://bob:"+t+"@git.example.com/a/b.git"),
		c.text("URL query", "GET https://api.example.com/v1/things?page=2&x="+t+" 200"),
		c.text("curl", "curl -sS -H 'X-Thing: "+t+"' https://api.example.com/v1"),
		c.text("environment", "export SOME_SETTING="+t+"\nexport OTHER=1"),
		c.text("telling environment", "MY_API_TOKEN="+t+" ./run.sh"),
		c.text("YAML", "settings:\n  value: "+t+"\n  other: 1\n"),
		c.text("source", `const value = "`+t+`" // from the page`),
		c.text("log pairs", `level=info msg="got `+t+`" value=`+t+` n=1`),
		c.text("colours", "\x1b[33m"+t+"\x1b[0m ok"),
		c.text("flag", "tool --value "+t+" --token "+t+" --password="+t),
		c.text("plain language", "The token is "+t+" and it works."),
	}
	if !strings.ContainsAny(t, "/:|") {
		all = append(all, c.text("URL path", "https://api.example.com/hook/"+t+"/run"))
	}
	if c.split > 0 {
		a, b := t[:c.split], t[c.split:]
		needles := append([]string{b}, c.Secrets...)
		if i := strings.LastIndexAny(a, "-_."); len(a)-i > 8 {
			needles = append(needles, a[i+1:])
		}
		for _, w := range []Embedding{
			{Name: "wrapped", Text: "It printed " + a + "\n" + b + "\nand ended."},
			{Name: "wrapped and indented", Text: "  value: " + a + "\n    " + b + "\n"},
			{Name: "wrapped with a backslash", Text: "echo " + a + "\\\n" + b + "\n"},
			{Name: "a sum of strings", Text: "x := \"" + a + "\" +\n\t\"" + b + "\"\n"},
			{Name: "a sum on a line", Text: `x = '` + a + `' + '` + b + `'`},
			{Name: "wrapped under a telling key", Text: "api_token: " + a + "\n  " + b + "\n"},
			{Name: "wrapped in the environment", Text: "export API_TOKEN=" + a + "\\\n" + b + "\n"},
			{Name: "wrapped in JSON", Text: quoted(map[string]any{"x": "line " + a + "\n" + b}), JSON: true},
		} {
			w.Needles = needles
			all = append(all, w)
		}
	}
	return all
}

func (c Canary) text(name, text string) Embedding {
	return Embedding{Name: name, Text: text, Needles: c.Secrets}
}

func (c Canary) json(name string, v any) Embedding {
	return Embedding{Name: name, Text: quoted(v), JSON: true, Needles: c.Secrets}
}

// quoted returns v as JSON without escapes for HTML.
func quoted(v any) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return ""
	}
	return strings.TrimSuffix(b.String(), "\n")
}

const (
	small    = "abcdefghijklmnopqrstuvwxyz"
	capitals = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	digits   = "0123456789"
	alnum    = digits + capitals + small
	hex      = digits + "abcdef"
	word     = alnum + "_-"
	b64      = alnum + "+/"
)

// source is the deterministic random source of the corpus.
type source struct{ *rand.Rand }

func newSource(seed uint64) source { return source{rand.New(rand.NewPCG(seed, 21))} }

// of returns n characters of an alphabet. They begin and end with a letter or
// a digit and hold one of each kind that the alphabet has.
func (r source) of(alphabet string, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = alphabet[r.IntN(len(alphabet))]
	}
	at := 1
	for _, kind := range []string{digits, small, capitals} {
		if i := strings.IndexAny(alphabet, kind); i >= 0 && at < n-1 {
			common := strings.Map(func(c rune) rune {
				if strings.ContainsRune(kind, c) {
					return c
				}
				return -1
			}, alphabet)
			b[at] = common[r.IntN(len(common))]
			at += 2
		}
	}
	for _, i := range []int{0, n - 1} {
		for strings.IndexByte(alnum, b[i]) < 0 {
			b[i] = alphabet[r.IntN(len(alphabet))]
		}
	}
	return string(b)
}

func (r source) uuid() string {
	return r.of(hex, 8) + "-" + r.of(hex, 4) + "-4" + r.of(hex, 3) + "-a" + r.of(hex, 3) + "-" + r.of(hex, 12)
}
