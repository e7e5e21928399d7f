// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"encoding/json"
	"fmt"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// content is what can be shown of a result's content.
type content struct {
	// joined is the text, and text says whether there is any part of text.
	joined string
	text   bool
	// leftOut names the parts that cannot be shown; empty if there are none.
	leftOut string
}

// contentOf reads the content of a result. It reports false for content that is no list.
func contentOf(res *sdk.CallToolResult) (content, bool) {
	raw := ""
	for _, c := range res.Content {
		if t, ok := c.(*sdk.TextContent); ok { // the wire makes one text of all
			raw = t.Text
		}
	}
	var parts []json.RawMessage
	if raw != "" && json.Unmarshal([]byte(raw), &parts) != nil {
		return content{}, false
	}
	var texts []string
	var left leftOut
	for _, p := range parts {
		var part struct {
			Type string
			Text *string
		}
		switch {
		case json.Unmarshal(p, &part) != nil:
			left.add("")
		case part.Type == "text" && part.Text != nil:
			texts = append(texts, *part.Text)
		default:
			left.add(part.Type)
		}
	}
	return content{strings.Join(texts, "\n"), len(texts) > 0, left.String()}, true
}

// kinds are the names of parts that cannot be shown, for one and for several. The name of another kind is the server's choice
// and is not shown.
var kinds = map[string][2]string{
	"image": {"image", "images"}, "audio": {"audio recording", "audio recordings"},
	"resource": {"embedded resource", "embedded resources"}, "resource_link": {"resource link", "resource links"},
	"": {"part of another kind", "parts of another kind"},
}

// leftOut counts parts by their kind, in the order in which they came.
type leftOut struct {
	order []string
	count map[string]int
}

func (l *leftOut) add(kind string) {
	if _, known := kinds[kind]; !known {
		kind = ""
	}
	if l.count == nil {
		l.count = map[string]int{}
	}
	if l.count[kind]++; l.count[kind] == 1 {
		l.order = append(l.order, kind)
	}
}

func (l *leftOut) String() string {
	var all []string
	for _, kind := range l.order {
		all = append(all, fmt.Sprintf("%d %s", l.count[kind], kinds[kind][min(l.count[kind], 2)-1]))
	}
	return strings.Join(all, ", ")
}
