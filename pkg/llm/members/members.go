// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package members says what becomes of each member of a request in a vendor's API on its way to a Provider that does not get
// the request as it is: one of another protocol, or any with the server's tools. The table is data (chat.go, responses.go,
// messages.go); Reduce applies it, and the reference for users prints it.
//
// A member is carried, under the same name or as its equivalent; or it is a hint that the vendor has no place for, and is left
// out with a word to the client; or it changes the answer and has no equivalent, and the request is refused by its name. So is a
// member that the table does not have. What is null, empty or the default means what its absence means.
//
// A name that differs in case from one of the table is another name, and a member that occurs twice is refused.
//
// What a vendor would keep between requests is refused at every Provider, also where a request is passed on; state.go of package
// server/compat has the rule. People read the table in artifacts/reference/vendor-apis.md, which is made of it.
package members

import (
	"strings"

	"github.com/platform-ai/platform/pkg/llm"
)

// API is one of the vendors' APIs.
type API string

// APIs.
const (
	Chat      API = "chat completions"
	Responses API = "responses"
	Messages  API = "messages"
)

// Fate is what becomes of a member.
type Fate string

// Fates.
const (
	Carried Fate = "carried"
	Dropped Fate = "left out"
	Refused Fate = "refused"
)

// Row is one member of the requests of an API.
type Row struct {
	// Path names the member. The elements of a list are told apart by their types: content[text], or tools[custom|] for those
	// of type custom and those without a type; [*] is any other type, and [] is all elements. A path that begins with **. is a
	// member of any object that is not the client's own, such as a schema.
	Path string
	// OpenAI and Anthropic are what becomes of it at Providers of that protocol.
	OpenAI, Anthropic Cell
	// Default is the value, as compact JSON, that means what the absence of the member means; empty for none.
	Default string
	// Why is the reason, or what else there is to know; empty for what speaks for itself.
	Why string
}

// Cell is what becomes of a member at one protocol.
type Cell struct {
	Fate Fate
	// As is the equivalent of a member that is carried; empty for one of the same name and form.
	As string
}

// at returns what becomes of the member at Providers of a protocol.
func (r *Row) at(p llm.Protocol) Fate {
	if p == llm.ProtocolAnthropic {
		return r.Anthropic.Fate
	}
	return r.OpenAI.Fate
}

// group are rows that have all in common but their paths, which are separated by white space and each followed by "=" and the
// default, if there is one.
type group struct {
	fate              Fate
	openAI, anthropic string // the equivalents
	why               string
	paths             string
}

// rows returns the table of an API.
func rows(groups []group) (all []Row) {
	for _, g := range groups {
		for path := range strings.FieldsSeq(g.paths) {
			path, neutral, _ := strings.Cut(path, "=")
			all = append(all, Row{Path: path, OpenAI: Cell{g.fate, g.openAI}, Anthropic: Cell{g.fate, g.anthropic}, Default: neutral, Why: g.why})
		}
	}
	return all
}

// Table returns the members of the requests of an API.
func Table(a API) []Row {
	switch a {
	case Responses:
		return rows(responses())
	case Messages:
		return rows(messages())
	case Chat:
	}
	return rows(chat())
}

// APIs returns all APIs.
func APIs() []API { return []API{Chat, Responses, Messages} }
