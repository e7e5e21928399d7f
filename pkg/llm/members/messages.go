// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package members

// messages are the members of messages.
func messages() []group {
	return []group{
		{Carried, "", "", "", `model max_tokens stream temperature system system[text].text
			messages[].role messages[].content messages[].content[text].text
			messages[].content[tool_use].id messages[].content[tool_use].name messages[].content[tool_use].input
			messages[].content[tool_result].tool_use_id messages[].content[tool_result].content messages[].content[tool_result].content[text].text
			tools[custom|].name tools[custom|].description`},
		{Carried, "", "", "left out beside a temperature at Anthropic, whose newer models take one of them", `top_p=1`},
		{Carried, "this server ends the text", "this server ends the text", "", `stop_sequences`},
		{Carried, "tool_choice, where any is required", "", "not one of a tool that is left out", `tool_choice.type tool_choice.name`},
		{Carried, "parallel_tool_calls", "", "", `tool_choice.disable_parallel_tool_use=false`},
		{Carried, "response_format", "output_config.format", "", `output_config.format output_format`},
		{Carried, "reasoning_effort", "", "the nearest of low, medium and high; left out for a model that refuses it", `output_config.effort`},
		{Carried, "parameters", "", "without a type it is of type object", `tools[custom|].input_schema`},
		{Carried, "strict", "", "left out for a model that refuses it", `tools[custom|].strict=false`},
		{Carried, "a line before the result", "", "", `messages[].content[tool_result].is_error=false`},
		{Carried, "image_url", "", "at OpenAI, an image in a result follows it as a message of the user", `messages[].content[image].source.type
			messages[].content[image].source.media_type messages[].content[image].source.data messages[].content[image].source.url
			messages[].content[tool_result].content[image].source.type messages[].content[tool_result].content[image].source.media_type
			messages[].content[tool_result].content[image].source.data messages[].content[tool_result].content[image].source.url`},
		{Dropped, "", "", "accepted and ignored", `top_k metadata thinking`},
		{Dropped, "", "", "about the request, not the answer", `service_tier speed="standard" diagnostics fallbacks fallback_credit_token`},
		{Dropped, "", "", "caching, which this server asks for itself", `**.cache_control **.prompt_cache_breakpoint`},
		{Dropped, "", "", "a hint", `context_management compaction tools[custom|].eager_input_streaming tools[custom|].defer_loading=false
			tools[custom|].input_examples tools[custom|].allowed_callers=["direct"] messages[].content[tool_use].caller
			messages[].content[image].transformations messages[].content[tool_result].content[image].transformations`},
		{Dropped, "", "", "what the text refers to, not the text", `system[text].citations messages[].content[text].citations
			messages[].content[tool_result].content[text].citations`},
		{Dropped, "", "", "what a model thought, which another one does not continue", `messages[].content[thinking] messages[].content[redacted_thinking]`},
		{Dropped, "", "", "tools of a vendor; a request that brings no others is refused", `tools[*]`},
		{Refused, "", "", "nothing is kept between requests; a thread is refused at any Provider", `thread`},
		{Refused, "", "", "nothing is kept between requests; one that was begun earlier is refused at any Provider", `container`},
		{Refused, "", "", "nothing is stored", `messages[].content[image].source.file_id messages[].content[tool_result].content[image].source.file_id`},
		{Refused, "", "", "no equivalent", `mcp_servers inference_geo output_config.task_budget system[*] messages[].content[*]
			messages[].content[tool_result].content[*] messages[].content[tool_use].toolset_name messages[].content[tool_result].toolset_name`},
	}
}
