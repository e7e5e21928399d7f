// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"

	"github.com/platform-ai/platform/test/realvendor"
	"github.com/platform-ai/platform/test/scriptedmodel/script"
)

// filing returns the plays for a coding agent: it reads a file that does not exist, writes one, and remembers that. Read and write
// make the calls of its tools.
func filing(read func(path string) script.ToolCall, write func(path, content string) script.ToolCall) func(dir string) map[string]realvendor.Play {
	return func(dir string) map[string]realvendor.Play {
		hello := func(n string) script.ToolCall { return write(filepath.Join(dir, n+".txt"), "hello from "+n+"\n") }
		const missing = `(?i)no such file|not exist|not found|cannot find|ENOENT`
		return map[string]realvendor.Play{
			"do errand one":   {Calls: []script.ToolCall{read(filepath.Join(dir, "missing.txt")), hello("one")}, Result: missing, Text: "Errand one is done."},
			"do errand two":   {Recalls: []string{"do errand one", missing, "Errand one is done."}, Calls: []script.ToolCall{hello("two")}, Text: "Errand two is done."},
			"do errand three": {Form: `{"city":"Bonn","degrees":21}`, Text: "Errand three is done."},
			"do errand four":  {Calls: []script.ToolCall{hello("four")}, Text: "Errand four is done."},
		}
	}
}

// tool returns a call with arguments as pairs of name and value.
func tool(name string, arguments ...string) script.ToolCall {
	all := map[string]string{}
	for i := 0; i < len(arguments); i += 2 {
		all[arguments[i]] = arguments[i+1]
	}
	raw, err := json.Marshal(all)
	if err != nil {
		panic(err) // texts
	}
	return script.ToolCall{Name: name, Arguments: raw}
}

// errand returns what went wrong with an errand that a coding agent did: it must say that it is done and have written its file.
func (r *clientRun) errand(n string, env []string, name string, args ...string) (string, error) {
	out, err := r.run(env, name, args...)
	if err != nil {
		return out, err
	}
	if want := "Errand " + n + " is done."; !strings.Contains(out, want) {
		return out, fmt.Errorf("the agent says: %s", lastLine(out))
	}
	if file, err := os.ReadFile(filepath.Join(r.dir, n+".txt")); err != nil || string(file) != "hello from "+n+"\n" {
		return out, errors.New("the file was not written")
	}
	return out, nil
}

// prompt is what the user asks for.
func prompt(n string) string { return "Please do errand " + n + "." }

// fromCache checks that an answer reports what was read from a cache: 800 tokens for each request.
func fromCache(out, member string) error {
	m := regexp.MustCompile(`"` + member + `":\s*(\d+)`).FindStringSubmatch(out)
	if m == nil {
		return errors.New("no usage was reported")
	}
	if n := m[1]; n != "800" && n != "1600" && n != "2400" {
		return fmt.Errorf("%s tokens are reported as read from a cache", n)
	}
	return nil
}

// weather checks a structured answer in what an agent printed.
func weather(out string, err error) error {
	if err != nil {
		return err
	}
	if !regexp.MustCompile(`\\?"degrees\\?":\s*21`).MatchString(out) {
		return fmt.Errorf("the agent says: %s", lastLine(out))
	}
	return nil
}

const weatherSchema = `{"type":"object","properties":{"city":{"type":"string"},"degrees":{"type":"number"}},"required":["city","degrees"],"additionalProperties":false}`

// write writes a file of an agent's settings.
func (r *clientRun) write(path string, content any) string {
	r.t.Helper()
	raw, ok := content.(string)
	if !ok {
		data, err := json.Marshal(content)
		if err != nil {
			r.t.Fatal(err)
		}
		raw = string(data)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(raw), 0o600); err != nil {
		r.t.Fatal(err)
	}
	return path
}

// headers are those that a client is told to send.
func (r *clientRun) headers() map[string]string {
	if r.header == "" {
		return map[string]string{}
	}
	return map[string]string{"X-Platform-Tools": r.header}
}

const (
	noAgent = "it cannot name an Agent, because it sends no parameter in the query"
	noForm  = "it has no structured answers"
)

func claudeCode() client {
	return client{
		name: "Claude Code", pkg: "@anthropic-ai/claude-code-linux-x64", api: "messages", marks: true, lacks: map[string]string{"fallback": noAgent},
		plays: filing(func(path string) script.ToolCall { return tool("Read", "file_path", path) },
			func(path, content string) script.ToolCall {
				return tool("Write", "file_path", path, "content", content)
			}),
		errands: func(r *clientRun) map[string]error {
			env := []string{
				"ANTHROPIC_BASE_URL=" + r.base + "/anthropic", "ANTHROPIC_API_KEY=" + r.token, "ANTHROPIC_MODEL=" + r.model, "ANTHROPIC_DEFAULT_HAIKU_MODEL=" + r.model,
				"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1", "DISABLE_TELEMETRY=1", "DISABLE_ERROR_REPORTING=1", "CLAUDE_CONFIG_DIR=" + r.home + "/.claude",
				"CLAUDE_CODE_MAX_RETRIES=0",
			}
			for name, value := range r.headers() {
				env = append(env, "ANTHROPIC_CUSTOM_HEADERS="+name+": "+value)
			}
			program := module(r.t, "@anthropic-ai/claude-code-linux-x64/claude")
			args := func(more ...string) []string {
				return append([]string{"--print", "--output-format", "json", "--permission-mode", "acceptEdits", "--allowedTools", "Read,Write"}, more...)
			}
			all := map[string]error{}
			out, err := r.errand("one", env, program, args("--", prompt("one"))...)
			all["tools"], all["cache"] = err, fromCache(out, "cache_read_input_tokens")
			_, all["reload"] = r.errand("two", env, program, args("--continue", "--", prompt("two"))...)
			all["structured"] = weather(r.run(env, program, args("--json-schema", weatherSchema, "--", prompt("three"))...))
			return all
		},
	}
}

func codex() client {
	return client{
		name: "Codex", pkg: "@openai/codex-linux-x64", api: "responses",
		plays: filing(func(path string) script.ToolCall { return tool("exec_command", "cmd", "cat "+path) },
			func(path, content string) script.ToolCall {
				return tool("exec_command", "cmd", "echo '"+strings.TrimSpace(content)+"' >"+path)
			}),
		errands: func(r *clientRun) map[string]error {
			config := func(agent, model string) string {
				text := fmt.Sprintf("model = %q\nmodel_provider = \"team\"\ncheck_for_update_on_startup = false\napproval_policy = \"never\"\nsandbox_mode = \"danger-full-access\"\n[analytics]\nenabled = false\n[feedback]\nenabled = false\n[features]\napps = false\nplugins = false\nremote_plugin = false\n"+
					"[model_providers.team]\nname = \"team\"\nbase_url = %q\nenv_key = \"TEAM_TOKEN\"\nwire_api = \"responses\"\nrequest_max_retries = 0\nstream_max_retries = 0\n", model, r.base+"/openai/v1")
				if r.header != "" {
					text += fmt.Sprintf("http_headers = { X-Platform-Tools = %q }\n", r.header)
				}
				if agent != "" {
					text += fmt.Sprintf("query_params = { agent = %q }\n", agent)
				}
				return text
			}
			home := r.home + "/.codex"
			vendor := map[string]string{"amd64": "x86_64-unknown-linux-musl", "arm64": "aarch64-unknown-linux-musl"}[runtime.GOARCH]
			program := module(r.t, "@openai/codex-linux-x64/vendor/"+vendor+"/bin/codex")
			env := []string{"CODEX_HOME=" + home, "TEAM_TOKEN=" + r.token, "RUST_LOG=off"}
			args := func(more ...string) []string {
				return append([]string{"exec", "--json", "--skip-git-repo-check"}, more...)
			}
			all := map[string]error{}
			r.write(home+"/config.toml", config("", r.model))
			out, err := r.errand("one", env, program, args(prompt("one"))...)
			all["tools"], all["cache"] = err, fromCache(out, "cached_input_tokens")
			_, all["reload"] = r.errand("two", env, program, args("resume", "--last", prompt("two"))...)
			all["structured"] = weather(r.run(env, program, args("--output-schema", r.write(r.home+"/schema.json", weatherSchema), prompt("three"))...))
			r.write(home+"/config.toml", config(r.agent, "m"))
			_, all["fallback"] = r.errand("four", env, program, args(prompt("four"))...)
			return all
		},
	}
}

func openCode(api, adapter string) client {
	c := client{
		name: "opencode", pkg: "opencode-linux-x64", api: api, marks: api == "messages", lacks: map[string]string{"structured": noForm},
		asks: []string{"registry.npmjs.org:443"}, // for its own plugins
		plays: filing(func(path string) script.ToolCall { return tool("read", "filePath", path) },
			func(path, content string) script.ToolCall { return tool("write", "filePath", path, "content", content) }),
	}
	if api != "chat completions" {
		c.lacks["fallback"] = noAgent
	}
	c.errands = func(r *clientRun) map[string]error {
		base := r.base + "/openai/v1"
		if api == "messages" {
			base = r.base + "/anthropic/v1"
		}
		config := func(model string, query map[string]string) map[string]any {
			options := map[string]any{"baseURL": base, "apiKey": r.token, "headers": r.headers()}
			if query != nil {
				options["queryParams"] = query
			}
			return map[string]any{
				"autoupdate": false, "share": "disabled", "snapshot": false, "permission": map[string]string{"*": "allow"},
				"enabled_providers": []string{"team"}, "model": "team/" + model, "small_model": "team/" + model,
				"provider": map[string]any{"team": map[string]any{
					"npm": adapter, "name": "team", "options": options,
					"models": map[string]any{model: map[string]any{"name": "m", "tool_call": true, "limit": map[string]int{"context": 100000, "output": 4000}}},
				}},
			}
		}
		program := module(r.t, "opencode-linux-x64/bin/opencode")
		env := []string{"OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_LSP_DOWNLOAD=1", "OPENCODE_DISABLE_DEFAULT_PLUGINS=1", "OPENCODE_PURE=1"}
		args := func(model string, more ...string) []string {
			return append([]string{"run", "--format", "json", "--model", "team/" + model}, more...)
		}
		all := map[string]error{}
		r.write(r.dir+"/opencode.json", config(r.model, nil))
		out, err := r.errand("one", env, program, args(r.model, prompt("one"))...)
		all["tools"], all["cache"] = err, fromCache(out, "read")
		_, all["reload"] = r.errand("two", env, program, args(r.model, "--continue", prompt("two"))...)
		if c.lacks["fallback"] == "" {
			r.write(r.dir+"/opencode.json", config("m", map[string]string{"agent": r.agent}))
			_, all["fallback"] = r.errand("four", env, program, args("m", prompt("four"))...)
		}
		return all
	}
	return c
}

func qwenCode(api, auth string) client {
	return client{
		name: "Qwen Code", pkg: "@qwen-code/qwen-code", api: api, marks: api == "messages", lacks: map[string]string{"fallback": noAgent},
		plays: filing(func(path string) script.ToolCall { return tool("read_file", "file_path", path) },
			func(path, content string) script.ToolCall {
				return tool("write_file", "file_path", path, "content", content)
			}),
		errands: func(r *clientRun) map[string]error {
			base := r.base + "/openai/v1"
			if api == "messages" {
				base = r.base + "/anthropic"
			}
			r.write(r.home+"/.qwen/settings.json", map[string]any{
				"modelProviders": map[string]any{auth: []any{map[string]any{
					"id": r.model, "name": r.model, "envKey": "TEAM_TOKEN", "baseUrl": base, "generationConfig": map[string]any{"maxRetries": 0, "customHeaders": r.headers()},
				}}},
				"security": map[string]any{"auth": map[string]any{"selectedType": auth}}, "model": map[string]any{"name": r.model},
				"general": map[string]any{"enableAutoUpdate": false}, "privacy": map[string]any{"usageStatisticsEnabled": false}, "telemetry": map[string]any{"enabled": false},
			})
			env := []string{"TEAM_TOKEN=" + r.token, "QWEN_SANDBOX=false"}
			program := module(r.t, node)
			args := func(more ...string) []string {
				return append([]string{module(r.t, "@qwen-code/qwen-code/cli-entry.js"), "--approval-mode", "yolo", "--output-format", "json", "--auth-type", auth, "--model", r.model}, more...)
			}
			all := map[string]error{}
			out, err := r.errand("one", env, program, args(prompt("one"))...)
			all["tools"], all["cache"] = err, fromCache(out, "cache_read_input_tokens")
			_, all["reload"] = r.errand("two", env, program, args("--continue", prompt("two"))...)
			all["structured"] = weather(r.run(env, program, args("--json-schema", weatherSchema, prompt("three"))...))
			return all
		},
	}
}

func cline(api, provider string) client {
	return client{
		name: "Cline", pkg: "@cline/cli-linux-x64", api: api, marks: api == "messages", lacks: map[string]string{"fallback": noAgent, "structured": noForm, "reload": "it continues a conversation only in a terminal"},
		asks: []string{"data.cline.bot:443"}, // in spite of telemetryOptOut
		plays: filing(func(path string) script.ToolCall {
			raw, err := json.Marshal(map[string]any{"files": []any{map[string]string{"path": path}}})
			if err != nil {
				panic(err) // texts
			}
			return script.ToolCall{Name: "read_files", Arguments: raw}
		}, func(path, content string) script.ToolCall {
			raw, err := json.Marshal(map[string]any{"commands": []string{"echo '" + strings.TrimSpace(content) + "' >" + path}})
			if err != nil {
				panic(err) // texts
			}
			return script.ToolCall{Name: "run_commands", Arguments: raw}
		}),
		errands: func(r *clientRun) map[string]error {
			base := r.base + "/openai/v1"
			if api == "messages" {
				base = r.base + "/anthropic/v1"
			}
			data := r.home + "/.cline/data"
			r.write(data+"/settings/providers.json", map[string]any{
				"version": 1, "lastUsedProvider": provider, "modes": map[string]any{},
				"providers": map[string]any{provider: map[string]any{
					"settings":  map[string]any{"provider": provider, "apiKey": r.token, "model": r.model, "baseUrl": base, "headers": r.headers()},
					"updatedAt": "2026-01-01T00:00:00.000Z", "tokenSource": "manual",
				}},
			})
			global := r.write(data+"/settings/global-settings.json", map[string]any{"telemetryOptOut": true, "autoUpdateEnabled": false})
			env := []string{"CLINE_NO_AUTO_UPDATE=1", "CLINE_SESSION_BACKEND_MODE=local", "CLINE_DATA_DIR=" + data, "CLINE_GLOBAL_SETTINGS_PATH=" + global}
			program := module(r.t, "@cline/cli-linux-x64/bin/cline")
			args := func(more ...string) []string {
				return append([]string{"--json", "--auto-approve", "true", "--retries", "1", "--provider", provider, "--model", r.model}, more...)
			}
			all := map[string]error{}
			out, err := r.errand("one", env, program, args(prompt("one"))...)
			all["tools"], all["cache"] = err, fromCache(out, "cacheReadTokens")
			return all
		},
	}
}
