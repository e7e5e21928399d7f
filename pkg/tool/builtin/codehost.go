// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	"encoding/json"
	"strings"
)

// Parameters that several of the tools for code hosts have.
const (
	pullRequestNumber = `"pr_number": {"type": "integer", "minimum": 1, "description": "Number of the pull request"}`
	issueNumber       = `"issue_number": {"type": "integer", "minimum": 1, "description": "Number of the issue"}`
	// repositorySource says in which repository a pull request or an issue is.
	repositorySource = `"task_name": {"type": "string", "maxLength": 253, "description": "Name of a task that you created, for its repository; without one, the repository is that of your own task"},
		"repo_url": {"type": "string", "maxLength": 2048, "description": "Address of the repository; it must be that of the task, which is the default"}`
	listPage = `"per_page": {"type": "integer", "minimum": 1, "maximum": 100, "default": 30, "description": "Most items to return"},
		"page": {"type": "integer", "minimum": 1, "default": 1, "description": "Which page of the list"}`
	commentBody = `"body": {"type": "string", "minLength": 1, "maxLength": 65536, "description": "The comment, in Markdown"}`
	// merging has the parameters of both tools that merge.
	merging = `"task_name": {"type": "string", "minLength": 1, "maxLength": 253, "description": "Name of the task that the pull request belongs to: your own, or one that you created"},
		` + pullRequestNumber + `,
		"merge_method": {"type": "string", "enum": ["merge", "squash", "rebase"], "default": "squash", "description": "How it is merged"},
		"commit_title": {"type": "string", "maxLength": 256, "description": "First line of the commit's message; the default is that of the code host"},
		"commit_message": {"type": "string", "maxLength": 65536, "description": "Rest of the commit's message"}`
)

// Tools for pull requests. The server carries out the calls, with credentials that runs do not get. A coordinator has these tools even
// if its task has no repository, because a call can name a task that has one. Where the place has no code host, it runs without them.
var (
	CreatePullRequest = &Tool{
		Name: "create_pull_request",
		Description: "Open a pull request for the branch to which a task has published its changes. " +
			"The task must have ended, and its branch must have been verified.",
		Schema: object(`"task_name": {"type": "string", "minLength": 1, "maxLength": 253, "description": "Name of a task that you created, whose changes the pull request is for"},
		"head_branch": {"type": "string", "minLength": 1, "maxLength": 255, "description": "Branch to which the task published"},
		"base_branch": {"type": "string", "minLength": 1, "maxLength": 255, "description": "Branch that the changes are to be merged into"},
		"title": {"type": "string", "minLength": 1, "maxLength": 256, "description": "Title of the pull request"},
		"body": {"type": "string", "maxLength": 32768, "description": "Description of the pull request, in Markdown"}`,
			"task_name", "head_branch", "base_branch", "title"),
		In: Runs | Agents, Effects: Sends | Writes, Automatic: Coordinators, Dispensable: true, Once: true,
	}
	ListPullRequests = &Tool{
		Name:        "list_pull_requests",
		Description: "List the open pull requests of a repository, the newest first.",
		Schema: object(repositorySource + `,
		` + listPage),
		In: Runs | Agents, Effects: Sends | Reads, Automatic: Coordinators, Dispensable: true,
	}
	CheckPRReviewMarker = &Tool{
		Name: "check_pr_review_marker",
		Description: "Find out whether the platform has reviewed a pull request at its present commit. " +
			"Put the marker that you get into the body of your review, unchanged.",
		Schema: object(pullRequestNumber+`,
		`+repositorySource+`,
		"head_sha": {"type": "string", "maxLength": 64, "description": "Commit that is to be reviewed; the default is the head of the pull request"}`,
			"pr_number"),
		In: Runs | Agents, Effects: Sends | Reads, Automatic: Coordinators, Dispensable: true,
	}
	CheckPullRequestCI = &Tool{
		Name:        "check_pull_request_ci",
		Description: "Get the checks of a pull request, and wait for them if you want.",
		Schema: object(pullRequestNumber+`,
		`+repositorySource+`,
		"wait_timeout": {"type": "string", "description": "How long to wait at most while checks are pending, such as 30m, up to 24h; without it, you get the present state"},
		"poll_interval": {"type": "string", "default": "30s", "description": "How often to look while waiting, from 5s to 10m"}`,
			"pr_number"),
		In: Runs | Agents, Effects: Sends | Reads, Automatic: Coordinators, Dispensable: true,
	}
	MergePullRequest = &Tool{
		Name: "merge_pull_request",
		Description: "Merge a pull request if all of its checks have passed. If you have looked at it before, " +
			"it is only merged at the commit that you have seen.",
		Schema: object(merging, "task_name", "pr_number"),
		In:     Runs | Agents, Effects: Sends | Writes, Automatic: Coordinators, Dispensable: true, Once: true,
	}
	AutoMergePullRequest = &Tool{
		Name: "auto_merge_pull_request",
		Description: "Wait until all checks of a pull request have passed, and merge it then. It ends when a check fails, " +
			"the pull request is closed, or the time has passed. Commits that are pushed while it waits are not merged.",
		Schema: object(merging+`,
		"timeout": {"type": "string", "default": "30m", "description": "How long to wait at most, such as 20m, up to 24h"}`,
			"task_name", "pr_number"),
		In: Runs | Agents, Effects: Sends | Writes, Automatic: Coordinators, Dispensable: true, Once: true,
	}
	ReviewPullRequest = &Tool{
		Name:        "review_pull_request",
		Description: "Read a pull request, to review it: its title, its text and its changes.",
		Schema: object(pullRequestNumber+`,
		`+repositorySource,
			"pr_number"),
		In: Runs | Agents, Effects: Sends | Reads, Automatic: Coordinators, Dispensable: true,
	}
	PostReviewComment = &Tool{
		Name:        "post_review_comment",
		Description: "Submit a review of a pull request. It is only submitted for the commit that you have seen.",
		Schema: object(pullRequestNumber+`,
		`+repositorySource+`,
		"body": {"type": "string", "maxLength": 65536, "description": "Text of the review, in Markdown"},
		"event": {"type": "string", "enum": ["APPROVE", "REQUEST_CHANGES", "COMMENT"], "description": "What the review says"},
		"comments": {"type": "array", "maxItems": 100, "description": "Comments on lines that the pull request changes", "items": {
			"type": "object",
			"properties": {
				"path": {"type": "string", "minLength": 1, "maxLength": 4096, "description": "File, from the root of the repository"},
				"line": {"type": "integer", "minimum": 1, "description": "Line of the file as it is after the change"},
				`+commentBody+`
			},
			"required": ["path", "line", "body"],
			"additionalProperties": false
		}}`,
			"pr_number", "body", "event"),
		In: Runs | Agents, Effects: Sends | Writes, Automatic: Coordinators, Dispensable: true, Once: true,
	}
)

// CreatePRMonitor has the server make a task that outlives the run, so its calls are for what the run may delegate.
var CreatePRMonitor = &Tool{
	Name: "create_pr_monitor", Description: "Create a task that has an agent review the open pull requests of a repository, by a schedule. It goes on without you.",
	Schema: schema[RunPRMonitorArguments], In: Runs | Agents, Effects: Writes, Automatic: Coordinators, Unlisted: true, Dispensable: true, Once: true,
}

// RunPRMonitorArguments are the arguments of create_pr_monitor of runs.
type RunPRMonitorArguments struct {
	Name         string `json:"name" desc:"Name of the monitor, which becomes that of its task: lower-case letters, digits and dashes" minLength:"1" maxLength:"63"`
	RepoURL      string `json:"repo_url" desc:"URL of the repository itself, without credentials, such as https://github.com/owner/repo" minLength:"1" maxLength:"2048"`
	Schedule     string `json:"schedule" desc:"Cron expression: when to look" minLength:"1"`
	AgentRef     string `json:"agent_ref" desc:"Name of the agent that reviews, to which you may delegate: one of type ai whose coordination is enabled and not autonomous" minLength:"1"`
	Namespace    string `json:"namespace,omitempty" desc:"Only your own is possible"`
	ProviderRef  string `json:"provider_ref,omitempty" desc:"Name of a provider that you or the agent use; default: that of the agent"`
	GitSecretRef string `json:"gitSecretRef,omitempty" desc:"Name of a Secret with a credential for the repository: one of your own task; default: the first that exists of git-credentials, github-credentials, copilot-token, github-token and git-token, which you may name, too"`
	PerPage      *int32 `json:"per_page,omitempty" desc:"How many pull requests are read at once" minimum:"1" maximum:"100" default:"30"`
	ReviewEvent  string `json:"review_event,omitempty" desc:"How a review ends" enum:"COMMENT,APPROVE,REQUEST_CHANGES" default:"COMMENT"`
	Prompt       string `json:"prompt,omitempty" desc:"What to look at" maxLength:"32768"`
}

// Tools for issues. Runs get those that they name.
var (
	ListIssues = &Tool{
		Name:        "list_issues",
		Description: "List the open issues of a repository, the newest first. Long texts are cut.",
		Schema: object(repositorySource + `,
		"unassigned_only": {"type": "boolean", "default": true, "description": "Leave out issues that somebody works on"},
		` + listPage),
		In: Runs | Agents, Effects: Sends | Reads,
	}
	GetIssue = &Tool{
		Name:        "get_issue",
		Description: "Read an issue with its comments.",
		Schema: object(issueNumber+`,
		`+repositorySource,
			"issue_number"),
		In: Runs | Agents, Effects: Sends | Reads,
	}
	CommentOnIssue = &Tool{
		Name:        "comment_on_issue",
		Description: "Write a comment on an issue.",
		Schema: object(issueNumber+`,
		`+commentBody+`,
		`+repositorySource,
			"issue_number", "body"),
		In: Runs | Agents, Effects: Sends | Writes, Once: true,
	}
)

// object returns the schema of an object that has these properties and no others.
func object(properties string, required ...string) func() json.RawMessage {
	demand := ""
	if len(required) > 0 {
		demand = `
	"required": ["` + strings.Join(required, `", "`) + `"],`
	}
	return text(`{
	"type": "object",
	"properties": {
		` + properties + `
	},` + demand + `
	"additionalProperties": false
}`)
}
