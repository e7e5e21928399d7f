// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package members

// responses are the members of responses. Providers of OpenAI's protocol get them as chat completions where they are not passed on.
func responses() []group {
	return []group{
		{Carried, "", "", "", `model stream temperature max_output_tokens instructions input
			input[message|].role input[message|].content input[message|].content[input_text|output_text|text].text
			input[function_call].call_id input[function_call].name input[function_call].arguments
			input[function_call_output].call_id input[function_call_output].output input[function_call_output].output[input_text|output_text|text].text
			tools[function].name tools[function].description`},
		{Carried, "", "", "completed alone; a part of an item is refused", `input[message|].status input[function_call].status input[function_call_output].status`},
		{Carried, "", "", "left out beside a temperature at Anthropic, whose newer models take one of them", `top_p=1`},
		{Carried, "", "tool_choice, where required is any", "not one of a tool that is left out", `tool_choice="auto"`},
		{Carried, "", "tool_choice.disable_parallel_tool_use", "", `parallel_tool_calls=true`},
		{Carried, "response_format", "output_config.format", "json_object is refused at Anthropic", `text.format={"type":"text"}`},
		{Carried, "reasoning_effort", "output_config.effort", "the nearest of low, medium and high; left out for a model that refuses it", `reasoning.effort`},
		{Carried, "", "input_schema", "without a type it is of type object", `tools[function].parameters`},
		{Carried, "", "strict", "left out for a model that refuses it", `tools[function].strict=false`},
		{Carried, "a tool NAMESPACE__NAME", "a tool NAMESPACE__NAME", "calls come back with their namespace", `tools[namespace].name tools[namespace].tools[function].name
			tools[namespace].tools[function].description tools[namespace].tools[function].parameters tools[namespace].tools[function].strict=false
			input[function_call].namespace`},
		{Carried, "a text", "a text", "", `input[message|].content[refusal].refusal`},
		{Carried, "image_url", "a block of type image", "", `input[message|].content[input_image].image_url
			input[function_call_output].output[input_image].image_url`},
		{Dropped, "", "", "accepted and ignored", `user`},
		{Dropped, "", "", "about the request, not the answer", `metadata client_metadata safety_identifier service_tier access_programs stream_options`},
		{Dropped, "", "", "nothing is stored", `input[message|].id input[function_call].id input[function_call_output].id`},
		{Dropped, "", "", "caching, which this server asks for itself", `prompt_cache_key prompt_cache_retention prompt_cache_options **.cache_control **.prompt_cache_breakpoint`},
		{Dropped, "", "", "more about the answer than what it says", `include reasoning.summary reasoning.generate_summary`},
		{Dropped, "", "", "a hint", `text.verbosity="medium" truncation="disabled" context_management reasoning.context reasoning.mode
			input[message|].phase input[message|].content[input_image].detail="auto" input[function_call_output].output[input_image].detail="auto"
			tools[function].defer_loading tools[function].output_schema tools[function].allowed_callers tools[function].async=false
			tools[namespace].description tools[namespace].tools[function].defer_loading tools[namespace].tools[function].output_schema
			tools[namespace].tools[function].allowed_callers tools[namespace].tools[function].async=false input[function_call].async=false`},
		{Dropped, "", "", "counts calls of the vendor's own tools, which are left out", `max_tool_calls`},
		{Dropped, "", "", "what the text refers to, not the text", `input[message|].content[input_text|output_text|text].annotations
			input[message|].content[input_text|output_text|text].logprobs input[function_call_output].output[input_text|output_text|text].annotations
			input[function_call_output].output[input_text|output_text|text].logprobs input[web_search_call]`},
		{Dropped, "", "", "what a model thought, which another one does not continue", `input[reasoning]`},
		{Dropped, "", "", "tools of a vendor; a request that brings no others is refused", `tools[*] tools[namespace].tools[*]`},
		{Refused, "", "", "nothing is kept between requests; refused at any Provider", `store=false background=false previous_response_id conversation input[item_reference]`},
		{Refused, "", "", "nothing is stored", `prompt`},
		{Refused, "", "", "no equivalent", `top_logprobs=0 moderation input[message|].content[input_image].file_id input[message|].content[input_file]
			input[message|].content[*] input[function_call_output].output[input_image].file_id input[function_call_output].output[input_file]
			input[function_call_output].output[*] input[function_call].caller input[*]`},
	}
}
