// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package eventlog

import (
	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// typeNames gives every event type its number on disk, which is its index. Append only: a number is never
// reused for another type. There can be 63.
var typeNames = [...]v1alpha1.EventType{
	1:  v1alpha1.EventTaskCreated,
	2:  v1alpha1.EventTaskPhaseChanged,
	3:  v1alpha1.EventTaskJobCreated,
	4:  v1alpha1.EventTaskStarted,
	5:  v1alpha1.EventTaskSucceeded,
	6:  v1alpha1.EventTaskFailed,
	7:  v1alpha1.EventTaskCancelled,
	8:  v1alpha1.EventWorkerStarted,
	9:  v1alpha1.EventWorkerCompleted,
	10: v1alpha1.EventWorkerFailed,
	11: v1alpha1.EventModelRequestStarted,
	12: v1alpha1.EventModelRequestCompleted,
	13: v1alpha1.EventModelRequestFailed,
	14: v1alpha1.EventModelUsageUpdated,
	15: v1alpha1.EventModelContextUpdated,
	16: v1alpha1.EventModelMessage,
	17: v1alpha1.EventContextTruncated,
	18: v1alpha1.EventToolCallStarted,
	19: v1alpha1.EventToolCallCompleted,
	20: v1alpha1.EventToolCallFailed,
	21: v1alpha1.EventWorkspacePreparationStarted,
	22: v1alpha1.EventWorkspacePreparationCompleted,
	23: v1alpha1.EventWorkspacePreparationFailed,
	24: v1alpha1.EventAgentRuntimeStarted,
	25: v1alpha1.EventAgentRuntimeCommandStarted,
	26: v1alpha1.EventAgentRuntimeCompleted,
	27: v1alpha1.EventAgentRuntimeFailed,
	28: v1alpha1.EventAgentRuntimeCancelled,
	29: v1alpha1.EventResultSubmitted,
	30: v1alpha1.EventArtifactUploadCompleted,
	31: v1alpha1.EventArtifactUploadFailed,
	32: v1alpha1.EventPlanUpdated,
	33: v1alpha1.EventGatewayDeliveryCompleted,
	34: v1alpha1.EventTaskForkRequested,
	35: v1alpha1.EventTaskForkCreated,
	36: v1alpha1.EventApprovalRequested,
	37: v1alpha1.EventApprovalApproved,
	38: v1alpha1.EventApprovalDeclined,
	39: v1alpha1.EventApprovalExpired,
	40: v1alpha1.EventApprovalCancelled,
	41: v1alpha1.EventApprovalExecutionUpdated,
	42: v1alpha1.EventToolCallJudged,
	43: v1alpha1.EventTaskMessageReceived,
	44: v1alpha1.EventTaskMessagesRead,
	45: v1alpha1.EventWorkspaceFrozen,
	46: v1alpha1.EventDeliveryStateChanged,
}

// severityNames gives every severity its number on disk. Append only.
var severityNames = [...]v1alpha1.EventSeverity{
	v1alpha1.SeverityDebug, v1alpha1.SeverityInfo, v1alpha1.SeverityWarning, v1alpha1.SeverityError,
}

// typeCodes maps every event type to its number.
var typeCodes = func() map[v1alpha1.EventType]uint8 {
	m := make(map[v1alpha1.EventType]uint8, len(typeNames))
	for code, name := range typeNames {
		if name != "" {
			m[name] = uint8(code)
		}
	}
	return m
}()

func severityCode(s v1alpha1.EventSeverity) (uint8, bool) {
	for code, name := range severityNames {
		if name == s {
			return uint8(code), true
		}
	}
	return 0, false
}

// A facet is one way to select events within an index: all of them, a type by
// its number, or a severity by its number on top of facetSeverity.
type facet = uint8

const (
	facetAll      facet = 0
	facetSeverity facet = 0x40
)

// codeSet is a set of type or severity numbers. The empty set stands for all.
type codeSet uint64

func (s codeSet) has(code uint8) bool { return s == 0 || s&(1<<code) != 0 }

func (s codeSet) codes() []uint8 {
	var list []uint8
	for code := range uint8(64) {
		if s&(1<<code) != 0 {
			list = append(list, code)
		}
	}
	return list
}
