// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"testing"

	"github.com/platform-ai/platform/pkg/llm"
)

// Of input that is not in the body, as much is reserved as it may be. What a client writes into the arguments of its tools and into
// schemas is none.
func TestOutside(t *testing.T) {
	t.Parallel()
	const image, search, window = int64(llm.ImageTokens), int64(llm.SearchTokens), int64(llm.WindowTokens)
	user := func(part string) string {
		return `"messages":[{"role":"user","content":[{"type":"text","text":"a \"file_id\" at url"},` + part + `]}]`
	}
	item := func(part string) string { return `"input":[{"role":"user","content":[` + part + `]}]` }
	for _, tc := range []struct {
		op   operation
		body string
		want int64
	}{
		{opMessages, user(`{"type":"document","source":{"type":"url","url":"https://example.com/a.pdf"}}`), window},
		{opMessages, user(`{"type":"document","source":{"type":"file","file_id":"file_1"}}`), window},
		{opMessages, user(`{"type":"document","source":{"type":"file","file\u005fid":"file_1"}}`), window},
		{opMessages, user(`{"type":"container_upload","file_id":"file_1"}`), window},
		{opMessages, user(`{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"AA=="}}`), 0},
		{opMessages, user(`{"type":"image","source":{"type":"url","url":"https://example.com/a.png"}},{"type":"image","source":{"type":"file","file_id":"f"}}`), 2 * image},
		{opMessages, user(`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA=="}}`), 0},
		{opMessages, user(`{"type":"tool_result","tool_use_id":"1","content":[{"type":"document","source":{"type":"url","url":"https://example.com/a.pdf"}}]}`), window},
		{opMessages, user(`{"type":"tool_use","id":"1","name":"f","input":{"file_id":"x","url":"https://example.com"}}`), 0},
		{opMessages, hello + `,"tools":[{"name":"f","input_schema":{"properties":{"file_id":{"type":"string"},"url":{}}}}]`, 0},
		{opMessages, hello + `,"tools":[{"type":"web_search_20250305","name":"web_search"}]`, search},
		{opMessages, hello + `,"tools":[{"type":"web_fetch_20250910","name":"web_fetch"}]`, window},
		{opMessages, hello + `,"mcp_servers":[{"type":"url","url":"https://example.com"}]`, window},
		{opChat, user(`{"type":"image_url","image_url":{"url":"https://example.com/a.png"}}`), image},
		{opChat, user(`{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}}`), 0},
		{opChat, user(`{"type":"file","file":{"file_id":"file_1"}}`), window},
		{opChat, `"messages":[{"role":"assistant","audio":{"id":"audio_1"}},{"role":"user","content":"a"}]`, window},
		{opChat, hello + `,"web_search_options":{}`, search},
		{opResponses, item(`{"type":"input_file","file_url":"https://example.com/a.pdf"}`), window},
		{opResponses, item(`{"type":"input_file","file_id":"f"}`), window},
		{opResponses, item(`{"type":"input_image","image_url":"https://example.com/a.png"},{"type":"input_image","file_id":"f"}`), 2 * image},
		{opResponses, helloItem + `,"prompt":{"id":"p"}`, window},
		{opResponses, helloItem + `,"tools":[{"type":"file_search","vector_store_ids":["v"]}]`, window},
		{opResponses, helloItem + `,"tools":[{"type":"web_search"}]`, search},
		{opResponses, helloItem, 0},
	} {
		in, err := read(tc.op, []byte(with(tc.body, `"model":"m"`, `"max_tokens":99`)))
		if err != nil {
			t.Fatalf("%s: %v", tc.body, err)
		}
		if o := in.outside(); o.tokens() != tc.want {
			t.Errorf("%s: %d, want %d", tc.body, o.tokens(), tc.want)
		}
	}
}
