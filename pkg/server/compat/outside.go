// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/platform-ai/platform/pkg/canonical"
	"github.com/platform-ai/platform/pkg/llm"
)

// outside is input that a request names and does not have in its body, such as a document by its address. Its size is known
// only after its vendor has read it, so Budgets reserve what it may be at most.
type outside struct {
	images            int
	searches, unknown bool
}

// tokens returns how many tokens it has at most.
func (o *outside) tokens() (n int64) {
	if o.unknown {
		return llm.WindowTokens
	}
	if o.searches {
		n = llm.SearchTokens
	}
	return min(llm.WindowTokens, n+int64(o.images)*llm.ImageTokens)
}

// namesOutside are texts of which a request has one if it names input that is outside of its body, or an escape for a letter of one.
var namesOutside = [][]byte{
	[]byte(`url"`), []byte(`"file_`), []byte(`"mcp`), []byte(`"web_`), []byte(`"code_`), []byte(`"audio"`), []byte(`"prompt"`), []byte(`"container`),
	[]byte(`\u004`), []byte(`\u005`), []byte(`\u006`), []byte(`\u007`),
}

// outsideTools are the types of tools that a vendor runs itself, without the date at their end, and what they bring.
var outsideTools = map[string]outside{
	"web_search": {searches: true}, "web_search_preview": {searches: true}, "web_fetch": {unknown: true}, "file_search": {unknown: true},
	"code_interpreter": {unknown: true}, "code_execution": {unknown: true}, "mcp": {unknown: true}, "mcp_toolset": {unknown: true},
}

// outside returns the input that the request names.
func (in *incoming) outside() outside {
	if !slices.ContainsFunc(namesOutside, func(s []byte) bool { return bytes.Contains(in.data, s) }) {
		return outside{}
	}
	var o outside
	for _, name := range []string{in.op.conversation(), "system"} {
		if all, err := canonical.Decode(in.get(name)); err == nil {
			o.look(all)
		}
	}
	var tools []json.RawMessage
	_ = json.Unmarshal(in.get("tools"), &tools) // what cannot be read is the vendor's to refuse
	for _, tool := range tools {
		kind := kindOf(tool)
		brings := outsideTools[strings.TrimRight(kind, "_0123456789")]
		o.searches, o.unknown = o.searches || brings.searches, o.unknown || brings.unknown
	}
	o.searches = o.searches || in.get("web_search_options") != nil
	o.unknown = o.unknown || in.get("prompt") != nil || in.get("container") != nil || filled(in.get("mcp_servers"))
	return o
}

// maxOutside returns how many tokens the input may have that is not in the body. Counting them spends none.
func (in *incoming) maxOutside() int64 {
	if in.op == opCount {
		return 0
	}
	o := in.outside()
	return o.tokens()
}

// look looks into a part of the conversation.
func (o *outside) look(v any) {
	switch v := v.(type) {
	case []any:
		for _, one := range v {
			o.look(one)
		}
	case map[string]any:
		o.object(v)
	}
}

// isNamed reports whether a value is the name of something.
func isNamed(v any) bool {
	s, ok := v.(string)
	return ok && s != ""
}

// remote reports whether a value is an address, alone or in an object, that does not have the data itself.
func remote(v any) bool {
	if in, ok := v.(map[string]any); ok {
		v = in["url"]
	}
	s, _ := v.(string)
	return s != "" && !strings.HasPrefix(s, "data:")
}

// object looks into an object of the conversation: a message, or a part of one.
func (o *outside) object(all map[string]any) {
	kind, _ := all["type"].(string)
	image := kind == "image" || kind == "input_image" || kind == "image_url"
	count := func(is bool) {
		switch {
		case is && image:
			o.images++
		case is:
			o.unknown = true
		}
	}
	if source, ok := all["source"].(map[string]any); ok {
		count(remote(source["url"]) || isNamed(source["file_id"]))
		o.look(source["content"])
	}
	count(remote(all["image_url"]) || isNamed(all["file_id"]))
	file, _ := all["file"].(map[string]any)
	audio, _ := all["audio"].(map[string]any)
	o.unknown = o.unknown || remote(all["file_url"]) || isNamed(file["file_id"]) || isNamed(audio["id"])
	for name, inner := range all {
		switch name {
		case "source", "image_url", "file", "audio": // which was looked at
		case "input": // the arguments of a call, which are the client's own
		default:
			o.look(inner)
		}
	}
}
