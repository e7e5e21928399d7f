// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package event

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// The durations that events measure, and their results. Both are closed lists, so that they
// can be labels of a metric.
const (
	MeasureQueue        = "queue"         // from the creation of a task to its first start
	MeasureRun          = "run"           // from its first start to its end
	MeasureModelRequest = "model_request" // as timed by the worker
	MeasureToolCall     = "tool_call"     // as timed by the worker

	ResultSucceeded = "succeeded"
	ResultFailed    = "failed"
	ResultCancelled = "cancelled"
)

// maxReported is the longest duration that is accepted from a producer.
const maxReported = 30 * 24 * time.Hour

// Reported returns the duration that a stored event reports: that of a model
// request or a tool call, whose end carries durationMs in its content.
func Reported(e *v1alpha1.ExecutionEvent) (measure, result string, took time.Duration, ok bool) {
	switch e.Type {
	case v1alpha1.EventModelRequestCompleted:
		measure, result = MeasureModelRequest, ResultSucceeded
	case v1alpha1.EventModelRequestFailed:
		measure, result = MeasureModelRequest, ResultFailed
	case v1alpha1.EventToolCallCompleted:
		measure, result = MeasureToolCall, ResultSucceeded
	case v1alpha1.EventToolCallFailed:
		measure, result = MeasureToolCall, ResultFailed
	default:
		return "", "", 0, false
	}
	ms, err := strconv.ParseInt(string(member(e, "durationMs")), 10, 64)
	if err != nil || ms < 0 || ms > maxReported.Milliseconds() {
		return "", "", 0, false
	}
	return measure, result, time.Duration(ms) * time.Millisecond, true
}

// EndResult returns how a task ended by its terminal event.
func EndResult(t v1alpha1.EventType) string {
	switch t {
	case v1alpha1.EventTaskSucceeded:
		return ResultSucceeded
	case v1alpha1.EventTaskCancelled:
		return ResultCancelled
	}
	return ResultFailed
}

// categories maps the words that producers use for a failure, normalised, to the kinds of failure.
var categories = map[string]string{
	"auth":                   "auth",
	"permissiondenied":       "permission",
	"unauthorizedtool":       "permission",
	"hostcommandsnotallowed": "permission",
	"ratelimited":            "limit",
	"quotaexhausted":         "limit",
	"contexttoolong":         "limit",
	"limitreached":           "limit",
	"maxiterations":          "limit",
	"invalidrequest":         "invalid",
	"invalidarguments":       "invalid",
	"referenceinvalid":       "invalid",
	"toolinvalid":            "invalid",
	"workermisconfigured":    "invalid",
	"alreadyexists":          "invalid",
	"notfound":               "not_found",
	"unknowntool":            "not_found",
	"servererror":            "unavailable",
	"serverunreachable":      "unavailable",
	"unreachable":            "unavailable",
	"unavailable":            "unavailable",
	"cutstream":              "unavailable",
	"malformedresponse":      "malformed",
	"blankanswer":            "malformed",
	"timeout":                "timeout",
	"deadlineexceeded":       "timeout",
	"canceled":               "cancelled",
	"cancelled":              "cancelled",
	"taskcancelled":          "cancelled",
	"workerstopped":          "cancelled",
	"approvaldeclined":       "approval",
	"approvalexpired":        "approval",
	"approvalcancelled":      "approval",
	"commandfailed":          "command",
	"commandnotrun":          "command",
	"internalerror":          "internal",
}

// FailureCategory returns the kind of failure that a stored event reports, or false if it reports none. An
// unknown word becomes other, so the list is closed.
func FailureCategory(e *v1alpha1.ExecutionEvent) (string, bool) {
	if !strings.HasSuffix(string(e.Type), "Failed") {
		return "", false
	}
	for _, key := range [...]string{"errorClass", "errorType", "reason"} {
		raw := member(e, key)
		if len(raw) < 2 || raw[0] != '"' {
			continue
		}
		var buf [maxLiftedKey]byte
		if c, ok := categories[string(normalizeKey(buf[:0], raw[1:len(raw)-1]))]; ok {
			return c, true
		}
	}
	return "other", true
}

// member returns the value of a key in the content of a stored event, which is compact JSON, or nil if the
// key is missing.
func member(e *v1alpha1.ExecutionEvent, name string) (found json.RawMessage) {
	if e.Content == nil || !bytes.HasPrefix(e.Content.Raw, []byte("{")) {
		return nil
	}
	members(e.Content.Raw, func(key []byte, value json.RawMessage) {
		if found == nil && string(key) == name {
			found = value
		}
	})
	return found
}
