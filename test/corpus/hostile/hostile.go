// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hostile makes bodies that a door for events of chat systems must refuse: what is no JSON, what two parsers would read differently,
// what has other members or types than the protocol, and what is longer or deeper than anything that is meant. Each has the code with which
// it is refused, and a text by which it would be found where it must not be. An event that is right can be made of the same parts, so that a
// test sees that nothing else is the reason.
package hostile

import (
	"fmt"
	"strings"
)

// Bodies is how many bodies there are.
const Bodies = 316

// Mark is in each body that has a text.
const Mark = "hostile-mark-4711"

// ID is the externalEventId of all bodies that have one.
const ID = "hostile-event"

// Body is a body that is refused.
type Body struct {
	// Name says what is wrong with it.
	Name string
	Text string
	// Code is the status with which it is refused.
	Code int
}

// part is a member of an event, as JSON.
type part struct{ name, value string }

// parts returns the members of an event that is right. The members of the sender have names that begin with "sender.".
func parts() []part {
	return []part{
		{"protocolVersion", `"platform.gateway.v1"`},
		{"externalEventId", `"` + ID + `"`},
		{"eventType", `"text"`},
		{"accountId", `"bot"`},
		{"contextId", `"room"`},
		{"threadId", `"t"`},
		{"sender.id", `"ada"`},
		{"sender.displayName", `"Ada"`},
		{"text", `"` + Mark + `"`},
		{"replyTarget", `"to"`},
		{"occurredAt", `"2026-03-01T10:00:00Z"`},
		{"receivedAt", `"2026-03-01T10:00:01Z"`},
		{"metadata", `{"team":"x"}`},
	}
}

// required are the members that no event lacks.
var required = map[string]bool{
	"protocolVersion": true, "externalEventId": true, "eventType": true, "accountId": true, "contextId": true, "sender.id": true, "text": true,
}

// written writes members as an event.
func written(all []part) string {
	var top, sender []string
	for _, p := range all {
		if name, ok := strings.CutPrefix(p.name, "sender."); ok {
			sender = append(sender, `"`+name+`":`+p.value)
			continue
		}
		top = append(top, `"`+p.name+`":`+p.value)
	}
	return `{` + strings.Join(append(top, `"sender":{`+strings.Join(sender, ",")+`}`), ",") + `}`
}

// Right returns an event that is right.
func Right() string { return written(parts()) }

// With returns an event whose member has another value, as JSON.
func With(name, value string) string {
	all := parts()
	for i := range all {
		if all[i].name == name {
			all[i].value = value
		}
	}
	return written(all)
}

// Padded returns an event that is right, with white space after it so that it has so many bytes.
func Padded(length int) string {
	right := Right()
	return right + strings.Repeat(" ", length-len(right))
}

// and returns an event with one more member, which is written as it is.
func and(name, value string) string { return written(append(parts(), part{name, value})) }

// without returns an event that lacks a member.
func without(name string) string {
	var left []part
	for _, p := range parts() {
		if p.name != name {
			left = append(left, p)
		}
	}
	return written(left)
}

// refused is the code of what is no event, and long that of what has too many bytes.
const refused, long = 400, 413

// list collects bodies.
type list []Body

func (l *list) add(name, text string) { *l = append(*l, Body{name, text, refused}) }

// Events returns the bodies. limit is how many bytes a body may have.
func Events(limit int) []Body {
	var l list
	l.syntax()
	l.encodings()
	l.deep()
	l.twice()
	l.unknown()
	l.types()
	l.values()
	l.times()
	for name, n := range map[string]int{"one byte more": limit + 1, "twice": 2 * limit} {
		l = append(l, Body{"too long: " + name, Padded(n), long})
	}
	// The rest are events that end too early, each at another place.
	right := Right()
	missing := Bodies - len(l)
	for i := range missing {
		at := 1 + i*(len(right)-1)/missing
		l.add(fmt.Sprintf("ends after %d bytes", at), right[:at])
	}
	return l
}

// syntax are texts that are not one JSON object.
func (l *list) syntax() {
	right := Right()
	for name, text := range map[string]string{
		"nothing": "", "white space": " \t\r\n", "null": "null", "true": "true", "a number": "1", "a text": `"` + Mark + `"`, "a list": "[" + right + "]",
		"an empty object": "{}", "another brace": right + "}", "a second event": right + right, "a second event on its line": right + "\n" + right,
		"a comma after it": right + ",", "a NUL after it": right + "\x00", "text after it": right + Mark, "a comma at the end": strings.TrimSuffix(right, "}") + ",}",
		"no colon": strings.Replace(right, `"text":`, `"text"`, 1), "two colons": strings.Replace(right, `"text":`, `"text"::`, 1), "two commas": strings.Replace(right, `,"text"`, `,,"text"`, 1),
		"single quotes": strings.ReplaceAll(right, `"`, "'"), "a name without quotes": strings.Replace(right, `"text"`, `text`, 1), "a comment": "/* x */" + right,
		"a comment inside": strings.Replace(right, `"text"`, `/* x */"text"`, 1), "a comment of a line": "// x\n" + right, "a byte order mark": "\ufeff" + right,
		"a form feed": "\f" + right, "a vertical tab": "\v" + right, "a space of Unicode": "\u00a0" + right, "a line separator": "\u2028" + right, "a NUL before it": "\x00" + right,
		"compressed": "\x1f\x8b\x08\x00\x00\x00\x00\x00", "a form": "text=" + Mark, "XML": "<event><text>" + Mark + "</text></event>", "YAML": "text: " + Mark,
		"a line of a header": "POST / HTTP/1.1\r\nHost: x\r\n\r\n" + right, "a frame of a stream": "data: " + right + "\n\n", "a record separator": "\x1e" + right,
	} {
		l.add("syntax: "+name, text)
	}
	for _, value := range []string{"NaN", "Infinity", "-Infinity", "01", "+1", "1.", ".5", "0x1", "1e", "1e999999999", "TRUE", "nul", "undefined"} {
		l.add("value: "+value, With("metadata", `{"team":`+value+`}`))
	}
	for _, escape := range []string{`\x41`, `\'`, `\0`, `\a`, `\u12`, `\uZZZZ`, `\U0001F600`, `\`, `\u{41}`} {
		l.add("escape: "+escape, With("text", `"`+Mark+escape+`"`))
	}
	for c := 0; c < 0x20; c += 2 {
		l.add(fmt.Sprintf("the control character %#02x", c), With("text", `"`+Mark+string(rune(c))+`"`))
	}
}

// encodings are texts that are not UTF-8, and halves of surrogate pairs, of which parsers make different texts.
func (l *list) encodings() {
	right := Right()
	var little, big strings.Builder
	for i := range len(right) {
		little.WriteString(right[i:i+1] + "\x00")
		big.WriteString("\x00" + right[i:i+1])
	}
	l.add("UTF-16, little", "\xff\xfe"+little.String())
	l.add("UTF-16, big", "\xfe\xff"+big.String())
	l.add("UTF-16 without a mark", little.String())
	for _, bytes := range []string{"\xff", "\xfe", "\x80", "\xc3", "\xc0\x80", "\xc1\xbf", "\xe0\x80\x80", "\xed\xa0\x80", "\xed\xbf\xbf", "\xf0\x80\x80\x80", "\xf4\x90\x80\x80", "\xf8\x88\x80\x80\x80"} {
		l.add(fmt.Sprintf("bytes % x in the text", bytes), With("text", `"`+Mark+bytes+`"`))
		l.add(fmt.Sprintf("bytes % x in a name", bytes), and("x"+bytes, "1"))
	}
	for _, half := range []string{`\ud800`, `\udbff`, `\udc00`, `\udfff`, `\ude00\ud83d`, `\ud83d\u0041`, `\ud83d\ud83d\ude00`} {
		l.add("half a pair "+half, With("text", `"`+Mark+half+`"`))
	}
	for _, name := range []string{"externalEventId", "accountId", "contextId", "threadId", "sender.id", "sender.displayName", "replyTarget"} {
		l.add("half a pair in "+name, With(name, `"x\ud800"`))
	}
	l.add("half a pair in the metadata", With("metadata", `{"team":"x\ud800"}`))
}

// deep are values in each other.
func (l *list) deep() {
	const very = 100_000
	for name, text := range map[string]string{
		"lists":                   strings.Repeat("[", very),
		"lists that end":          strings.Repeat("[", very) + strings.Repeat("]", very),
		"objects":                 strings.Repeat(`{"":`, very/2),
		"objects in the metadata": `{"metadata":` + strings.Repeat(`{"a":`, very/3),
		"lists in the metadata":   With("metadata", strings.Repeat("[", very)+strings.Repeat("]", very)),
		"lists in the text":       With("text", strings.Repeat("[", very)+strings.Repeat("]", very)),
		"17 lists":                With("metadata", `{"team":`+strings.Repeat("[", 17)+strings.Repeat("]", 17)+`}`),
	} {
		l.add("deep: "+name, text)
	}
	l.add("many members", `{"metadata":{`+strings.Repeat(`"a":"b",`, 30_000)+`"z":"z"}}`)
	l.add("a long name", and(strings.Repeat("x", 200_000), "1"))
}

// twice are members that are there twice, or whose names differ in their case or their escapes.
func (l *list) twice() {
	for _, p := range parts() {
		l.add("twice: "+p.name, and(p.name, p.value))
		name := strings.TrimPrefix(p.name, "sender.")
		l.add("in capitals: "+p.name, and(strings.Replace(p.name, name, strings.ToUpper(name), 1), p.value))
		l.add("twice, escaped: "+p.name, and(strings.Replace(p.name, name, fmt.Sprintf(`\u%04x`, name[0])+name[1:], 1), p.value))
	}
	l.add("twice: a key of the metadata", With("metadata", `{"team":"x","team":"y"}`))
	l.add("twice: the sender", strings.TrimSuffix(Right(), "}")+`,"sender":{"id":"root"}}`)
	l.add("twice: the sender in capitals", strings.TrimSuffix(Right(), "}")+`,"Sender":{"id":"root"}}`)
}

// unknown are members that an event does not have.
func (l *list) unknown() {
	for _, name := range []string{
		"", " text", "text ", `text\u0000`, "__proto__", "constructor", "namespace", "gatewayName", "state", "status", "taskName", "sessionName", "sender.role", "sender.groups", "bindingName", "$ref", "te\u200bxt",
	} {
		l.add(fmt.Sprintf("unknown: %q", name), and(name, `"`+Mark+`"`))
	}
}

// types are values of another type.
func (l *list) types() {
	for _, p := range parts() {
		for _, value := range []string{"1", `["x"]`} {
			l.add("another type: "+p.name+" "+value, With(p.name, value))
		}
		if required[p.name] {
			l.add("null: "+p.name, With(p.name, "null"))
			l.add("empty: "+p.name, With(p.name, `""`))
			l.add("missing: "+p.name, without(p.name))
		}
	}
}

// values are texts of the right type that no event has.
func (l *list) values() {
	for _, name := range []string{"externalEventId", "accountId", "contextId", "threadId", "sender.id", "sender.displayName", "replyTarget"} {
		l.add("long: "+name, With(name, `"`+strings.Repeat("x", 257)+`"`))
		l.add("NUL: "+name, With(name, `"x\u0000"`))
		l.add("a line break: "+name, With(name, `"x\n"`))
	}
	l.add("long: externalEventId of two bytes each", With("externalEventId", `"`+strings.Repeat("é", 129)+`"`))
	l.add("long: text", With("text", `"`+strings.Repeat("x", 64<<10+1)+`"`))
	l.add("long: text of four bytes each", With("text", `"`+strings.Repeat("😀", 16<<10)+`x"`))
	l.add("blank: text", With("text", `" \n\t"`))
	var many []string
	for i := range 33 {
		many = append(many, fmt.Sprintf(`"k%d":"v"`, i))
	}
	l.add("metadata: many", With("metadata", "{"+strings.Join(many, ",")+"}"))
	for _, key := range []string{"", "a b", "é", `a\u0000`, "a:b", "a*", "other", strings.Repeat("k", 129)} {
		l.add(fmt.Sprintf("metadata: the key %.10q", key), With("metadata", `{"`+key+`":"v"}`))
	}
	l.add("metadata: a long value", With("metadata", `{"team":"`+strings.Repeat("v", 1025)+`"}`))
	for _, version := range []string{"platform.gateway.v2", "platform.gateway.v1 ", "Platform.Gateway.V1", "platform.gateway.v1.1", "v1"} {
		l.add("version: "+version, With("protocolVersion", `"`+version+`"`))
	}
	for _, kind := range []string{"TEXT", "text ", "image", "command"} {
		l.add("type: "+kind, With("eventType", `"`+kind+`"`))
	}
}

// times are times that are none, or that are in no year of four digits once they are in UTC.
func (l *list) times() {
	for _, name := range []string{"occurredAt", "receivedAt"} {
		for _, at := range []string{
			"", "now", "1772359200", "2026-03-01", "2026-03-01 10:00:00Z", "2026-03-01T10:00:00", "2026-13-01T10:00:00Z", "2026-03-01T25:00:00Z",
			"9999-12-31T23:59:59-01:00", "0000-01-01T00:00:00+01:00",
		} {
			l.add(name+": "+at, With(name, `"`+at+`"`))
		}
	}
}
