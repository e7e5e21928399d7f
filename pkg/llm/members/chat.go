// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package members

// chat are the members of chat completions.
func chat() []group {
	return []group{
		{Carried, "", "", "", `model stream stream_options.include_usage temperature max_tokens max_completion_tokens
			messages[].role messages[].content messages[].content[text].text messages[].tool_call_id
			messages[].tool_calls[function|].id messages[].tool_calls[function|].index
			messages[].tool_calls[function|].function.name messages[].tool_calls[function|].function.arguments
			tools[function].function.name tools[function].function.description`},
		{Carried, "", "", "left out beside a temperature at Anthropic, whose newer models take one of them", `top_p=1`},
		{Carried, "", "stop_sequences", "sequences of nothing but white space end the text in this server", `stop`},
		{Carried, "", "tool_choice, where required is any", "not one of a tool that is left out", `tool_choice="auto"`},
		{Carried, "", "tool_choice.disable_parallel_tool_use", "", `parallel_tool_calls=true`},
		{Carried, "", "output_config.format", "json_object is refused at Anthropic", `response_format={"type":"text"}`},
		{Carried, "", "output_config.effort", "the nearest of low, medium and high; left out for a model that refuses it", `reasoning_effort`},
		{Carried, "", "input_schema", "without a type it is of type object", `tools[function].function.parameters`},
		{Carried, "", "strict", "left out for a model that refuses it", `tools[function].function.strict=false`},
		{Carried, "a text", "a text", "", `messages[].refusal messages[].content[refusal].refusal`},
		{Carried, "", "a block of type image", "", `messages[].content[image_url].image_url.url`},
		{Dropped, "", "", "accepted and ignored", `frequency_penalty=0 presence_penalty=0 user`},
		{Dropped, "", "", "about the request, not the answer", `metadata safety_identifier service_tier stream_options.include_obfuscation`},
		{Dropped, "", "", "caching, which this server asks for itself", `prompt_cache_key prompt_cache_retention prompt_cache_options **.cache_control **.prompt_cache_breakpoint`},
		{Dropped, "", "", "a hint", `verbosity="medium" prediction messages[].content[image_url].image_url.detail="auto"`},
		{Dropped, "", "", "whose name a message has says nothing to the model of another vendor", `messages[].name`},
		{Dropped, "", "", "what the text refers to, not the text", `messages[].annotations messages[].content[text].annotations`},
		{Dropped, "", "", "what a model thought, which another one does not continue", `messages[].reasoning_content messages[].reasoning
			messages[].reasoning_details messages[].thinking_blocks messages[].provider_specific_fields messages[].content[thinking]
			messages[].content[reasoning] messages[].tool_calls[function|].extra_content`},
		{Dropped, "", "", "tools of a vendor; a request that brings no others is refused", `tools[*]`},
		{Refused, "", "", "one answer is given", `n=1`},
		{Refused, "", "", "nothing is stored", `store=false`},
		{Refused, "", "", "no equivalent", `logprobs=false top_logprobs=0 logit_bias={} seed audio modalities=["text"] web_search_options moderation
			functions function_call="auto" messages[].audio messages[].function_call messages[].tool_calls[*]
			messages[].content[input_audio] messages[].content[file] messages[].content[*]`},
	}
}
