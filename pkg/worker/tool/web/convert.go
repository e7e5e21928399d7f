// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"bytes"
	"encoding/json"
	"strings"

	htmltomarkdown "github.com/JohannesKaufmann/html-to-markdown/v2"
	"golang.org/x/net/html"
)

// Limits of a page that is converted. Each line in a quotation or a list begins with a mark for each of these around it, and
// each value in JSON with two spaces for each value around it, so a page of 5 MiB could become one of gigabytes.
const (
	maxIndent    = 32
	maxConverted = 4 * maxBody
)

// markdown converts a page of HTML. It reports false for a page that cannot be parsed, that is nested too deeply or that
// would become too long.
func markdown(body []byte) (string, bool) {
	doc, err := html.Parse(bytes.NewReader(body)) // refuses more than 512 open elements
	if err != nil || length(doc, 0) > maxConverted {
		return "", false
	}
	out, err := htmltomarkdown.ConvertNode(doc)
	return string(out), err == nil
}

// length returns about how many bytes of Markdown a node becomes, below so many nodes that indent it, or more than maxConverted.
func length(n *html.Node, indent int) int {
	switch n.Data {
	case "blockquote", "ul", "ol", "dl":
		indent++
	}
	if indent > maxIndent {
		return maxConverted + 1
	}
	lines := 1
	if n.Type == html.TextNode {
		lines += strings.Count(n.Data, "\n")
	}
	sum := len(n.Data) + 4*indent*lines
	for c := n.FirstChild; c != nil && sum <= maxConverted; c = c.NextSibling {
		sum += length(c, indent)
	}
	return sum
}

// indented returns a text of JSON with a line for each value. It reports false for what is not JSON or would become too long.
func indented(body []byte) (string, bool) {
	sum, depth, quoted := len(body), 0, false
	for i := 0; i < len(body) && sum <= maxConverted; i++ {
		switch c := body[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '[' || c == '{':
			depth++
			sum += 1 + 2*depth
		case c == ']' || c == '}':
			depth--
			sum += 1 + 2*max(0, depth)
		case c == ',':
			sum += 1 + 2*max(0, depth)
		}
	}
	var pretty bytes.Buffer
	if sum > maxConverted || json.Indent(&pretty, body, "", "  ") != nil {
		return "", false
	}
	return pretty.String(), true
}
