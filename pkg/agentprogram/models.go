// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package agentprogram

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// Models is where a coding agent finds its models.
type Models struct {
	// URL is the address of a server that has Anthropic's API at /anthropic and OpenAI's at /openai/v1.
	URL string
	// Key is the key of that server, which is worth nothing elsewhere.
	Key string
	// Name is the name of the model; empty if the agent has none.
	Name string
	// Effort is how hard the model is to think; empty for what the agent itself decides.
	Effort v1alpha1.ReasoningEffort
}

// setup is how a program is told of its models.
type setup struct {
	// env are variables, and files the texts of files by their paths below the agent's home folder.
	env   map[string]string
	files map[string]string
}

// Setup returns what tells the program where its models are: variables, and the texts of files by their paths below its home folder.
func (p Program) Setup(m Models) (env []string, files map[string]string) {
	if m.Name == "" || p.setup == nil {
		return nil, nil
	}
	s := p.setup(m)
	for name, value := range s.env {
		env = append(env, name+"="+value)
	}
	return env, s.files
}

// claude is told by the variables of Claude Code (https://code.claude.com/docs/en/settings). It uses several models, which are all the
// same one here. Tools of servers are told to the model from the start: searching for them is a feature of one vendor's models.
func claude(m Models) setup {
	s := setup{env: map[string]string{"ANTHROPIC_BASE_URL": m.URL + "/anthropic", "ANTHROPIC_AUTH_TOKEN": m.Key, "ENABLE_TOOL_SEARCH": "false"}}
	for _, name := range []string{
		"ANTHROPIC_MODEL", "ANTHROPIC_SMALL_FAST_MODEL", "ANTHROPIC_DEFAULT_OPUS_MODEL", "ANTHROPIC_DEFAULT_SONNET_MODEL", "ANTHROPIC_DEFAULT_HAIKU_MODEL",
		"CLAUDE_CODE_SUBAGENT_MODEL",
	} {
		s.env[name] = m.Name
	}
	if m.Effort != "" {
		s.env["CLAUDE_CODE_EFFORT_LEVEL"] = string(m.Effort)
	}
	return s
}

// codex is told by its configuration (https://developers.openai.com/codex/config-reference). Its own sandbox is off, because it runs in
// one already, in which it cannot make another.
func codex(m Models) setup {
	effort := ""
	if m.Effort != "" {
		effort = fmt.Sprintf("model_reasoning_effort = %q\n", m.Effort)
	}
	return setup{
		env: map[string]string{"CODEX_API_KEY": m.Key, "OPENAI_API_KEY": m.Key},
		files: map[string]string{".codex/config.toml": fmt.Sprintf(`model = %s
model_provider = "platform"
%ssandbox_mode = "danger-full-access"
check_for_update_on_startup = false

[analytics]
enabled = false

[feedback]
enabled = false

[features]
apps = false
plugins = false
remote_plugin = false

[model_providers.platform]
name = "platform"
base_url = %s
env_key = "OPENAI_API_KEY"
wire_api = "responses"
`, strconv.Quote(m.Name), effort, strconv.Quote(m.URL+"/openai/v1"))},
	}
}

// openCode is told by a variable with its configuration (https://opencode.ai/docs/config). It asks for permission only where it is told
// to. It talks to itself over a port, on which nobody else of the machine may tell it what to do.
func openCode(m Models) setup {
	type object = map[string]any
	config, err := json.Marshal(object{
		"model": "platform/" + m.Name, "small_model": "platform/" + m.Name, "autoupdate": false, "share": "disabled",
		"permission":        object{"edit": "ask", "bash": "ask", "webfetch": "ask"},
		"enabled_providers": []string{"platform"}, "provider": object{"platform": object{
			"npm": "@ai-sdk/openai-compatible", "name": "platform", "options": object{"baseURL": m.URL + "/openai/v1", "apiKey": m.Key},
			"models": object{m.Name: object{"name": m.Name}},
		}},
	})
	if err != nil {
		return setup{} // texts can always be encoded
	}
	return setup{env: map[string]string{"OPENCODE_CONFIG_CONTENT": string(config), "OPENCODE_SERVER_PASSWORD": m.Key}}
}

// copilot is told by its variables for other providers (https://docs.github.com/copilot/how-tos/copilot-cli/customize-copilot/use-byok-models).
func copilot(m Models) setup {
	return setup{env: map[string]string{
		"COPILOT_PROVIDER_TYPE": "openai", "COPILOT_PROVIDER_BASE_URL": m.URL + "/openai/v1", "COPILOT_PROVIDER_API_KEY": m.Key, "COPILOT_MODEL": m.Name,
	}}
}
