// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// category is why there is no answer, as the person who asked is told. What exactly went wrong is for those who may read the task: it may
// name what is nobody's business in a chat.
type category int

// Categories.
const (
	generic category = iota
	cancelled
	misconfigured
	quota
	timeout
	rateLimited
	tooLong
)

// texts are what is said.
var texts = map[category]string{
	generic:       "Something went wrong, so there is no answer. Please try again.",
	cancelled:     "This request was cancelled, so there is no answer.",
	misconfigured: "The agent is not set up as it should be, so there is no answer. Please tell whoever looks after it.",
	quota:         "There is no answer, because as much was used as may be used. Please try again later, or tell whoever looks after the agent.",
	timeout:       "There is no answer, because it took too long. Please try again.",
	rateLimited:   "There is no answer, because too much is being asked at the moment. Please try again in a few minutes.",
	tooLong:       "This conversation is longer than the agent can take. Please start a new one.",
}

// categories are those of all reasons for which a task can fail.
var categories = map[string]category{
	v1alpha1.ReasonTaskSucceeded: generic, // without a result
	v1alpha1.ReasonTaskFailed:    generic,
	v1alpha1.ReasonTaskCancelled: cancelled,
	v1alpha1.ReasonCancelled:     cancelled,
	v1alpha1.ReasonDeleted:       cancelled,
	v1alpha1.ReasonTimedOut:      timeout,

	v1alpha1.ReasonRefused:                        misconfigured,
	v1alpha1.ReasonNotSupported:                   misconfigured,
	v1alpha1.ReasonInvalidSchedule:                misconfigured,
	v1alpha1.ReasonUnknownType:                    misconfigured,
	v1alpha1.ReasonRuntimeNotAvailable:            misconfigured,
	v1alpha1.ReasonIncompatibleAgent:              misconfigured,
	v1alpha1.ReasonNamespaceIsolationViolation:    misconfigured,
	v1alpha1.ReasonNoPrompt:                       misconfigured,
	v1alpha1.ReasonNoProvider:                     misconfigured,
	v1alpha1.ReasonProviderUnsupported:            misconfigured,
	v1alpha1.ReasonProviderInvalid:                misconfigured,
	v1alpha1.ReasonNoModel:                        misconfigured,
	v1alpha1.ReasonAmbiguousProvider:              misconfigured,
	v1alpha1.ReasonCommandRequired:                misconfigured,
	v1alpha1.ReasonImageNotUsed:                   misconfigured,
	v1alpha1.ReasonSandboxUnavailable:             misconfigured,
	v1alpha1.ReasonHostCommandsNotAllowed:         misconfigured,
	v1alpha1.ReasonToolUnavailable:                misconfigured,
	v1alpha1.ReasonToolInvalid:                    misconfigured,
	v1alpha1.ReasonTransactionTokenPendingTimeout: generic,
	v1alpha1.ReasonTransactionTokenLost:           generic,
	v1alpha1.ReasonRequesterUnverified:            misconfigured,
	v1alpha1.ReasonCoordinationDisabled:           misconfigured,
	v1alpha1.ReasonDepthExceeded:                  misconfigured,
	v1alpha1.ReasonTreeLimitReached:               misconfigured,
	v1alpha1.ReasonAgentNotAllowed:                misconfigured,
	v1alpha1.ReasonParentEnded:                    cancelled,
	v1alpha1.ReasonAgentNotFound:                  misconfigured,
	v1alpha1.ReasonProviderNotFound:               misconfigured,
	v1alpha1.ReasonAgentRuntimeNotFound:           misconfigured,
	v1alpha1.ReasonSkillNotFound:                  misconfigured,
	v1alpha1.ReasonSecretNotFound:                 misconfigured,
	v1alpha1.ReasonSecretKeyNotFound:              misconfigured,
	v1alpha1.ReasonSecretHostNotAllowed:           misconfigured,
	v1alpha1.ReasonConfigMapNotFound:              misconfigured,
	v1alpha1.ReasonConfigMapKeyNotFound:           misconfigured,
	v1alpha1.ReasonSessionNotFound:                misconfigured,

	v1alpha1.ReasonCompleted:                 generic,
	v1alpha1.ReasonWorkerMisconfigured:       misconfigured,
	v1alpha1.ReasonWorkerStopped:             generic,
	v1alpha1.ReasonNotBegun:                  generic,
	v1alpha1.ReasonServerUnreachable:         generic,
	v1alpha1.ReasonTaskReplaced:              cancelled,
	v1alpha1.ReasonRepositoryUnreachable:     generic,
	v1alpha1.ReasonRepositoryNotRead:         misconfigured,
	v1alpha1.ReasonWorkspaceRefused:          misconfigured,
	v1alpha1.ReasonPriorTaskUnusable:         misconfigured,
	v1alpha1.ReasonNoChanges:                 generic,
	v1alpha1.ReasonPublicationRefused:        misconfigured,
	v1alpha1.ReasonDeliveryConflict:          generic,
	v1alpha1.ReasonCredentialBlocked:         misconfigured,
	v1alpha1.ReasonPublicationOutcomeUnknown: generic,
	v1alpha1.ReasonPullRequestNotOpened:      generic,
	v1alpha1.ReasonReferenceInvalid:          misconfigured,
	v1alpha1.ReasonCommandFailed:             generic,
	v1alpha1.ReasonCommandNotRun:             misconfigured,
	v1alpha1.ReasonAgentFailed:               generic,
	v1alpha1.ReasonAgentRefused:              generic,
	v1alpha1.ReasonAgentLimitReached:         quota,
	v1alpha1.ReasonRuntimeReplaced:           generic,
	v1alpha1.ReasonRuntimeLeaseLost:          generic,
	v1alpha1.ReasonMaxIterations:             quota,
	v1alpha1.ReasonToolCallsRepeated:         generic,
	v1alpha1.ReasonTokenBudgetExhausted:      quota,
	v1alpha1.ReasonBudgetExhausted:           quota,
	v1alpha1.ReasonBudgetUnpriced:            misconfigured,
	v1alpha1.ReasonBudgetWarning:             generic,
	v1alpha1.ReasonBudgetAvailable:           generic,
	v1alpha1.ReasonBlankAnswer:               generic,
	v1alpha1.ReasonApprovalNotAsked:          generic,
	v1alpha1.ReasonResultNotSubmitted:        generic,
	v1alpha1.ReasonInternalError:             generic,

	v1alpha1.ReasonModelRequestUnrecorded:    misconfigured,
	v1alpha1.ReasonModelAuthenticationFailed: misconfigured,
	v1alpha1.ReasonModelQuotaExhausted:       quota,
	v1alpha1.ReasonModelContextTooLong:       tooLong,
	v1alpha1.ReasonModelRequestInvalid:       misconfigured,
	v1alpha1.ReasonModelRateLimited:          rateLimited,
	v1alpha1.ReasonModelServerError:          generic,
	v1alpha1.ReasonModelUnreachable:          generic,
	v1alpha1.ReasonModelStreamCut:            generic,
	v1alpha1.ReasonModelResponseMalformed:    generic,

	v1alpha1.ReasonWorkerLost:             generic,
	v1alpha1.ReasonWorkerFailed:           generic,
	v1alpha1.ReasonWorkerKilled:           generic,
	v1alpha1.ReasonDiskLimitExceeded:      quota,
	v1alpha1.ReasonOOMKilled:              quota,
	v1alpha1.ReasonEvicted:                generic,
	v1alpha1.ReasonPreempted:              generic,
	v1alpha1.ReasonNodeLost:               generic,
	v1alpha1.ReasonImagePullFailed:        misconfigured,
	v1alpha1.ReasonUnschedulable:          misconfigured,
	v1alpha1.ReasonMountFailed:            misconfigured,
	v1alpha1.ReasonPodNotCreated:          misconfigured,
	v1alpha1.ReasonPodNotAccepted:         misconfigured,
	v1alpha1.ReasonContainerConfigInvalid: misconfigured,
	v1alpha1.ReasonStartFailed:            generic,
	v1alpha1.ReasonStartTimedOut:          generic,
	v1alpha1.ReasonQuotaExceeded:          quota,
	v1alpha1.ReasonImagePulling:           generic,
	v1alpha1.ReasonMounting:               generic,
}

// categoryOf returns why a task that ended gave no answer.
func categoryOf(t *v1alpha1.Task) category {
	if t.Status.Phase == v1alpha1.TaskCancelled {
		return cancelled
	}
	if c := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.ConditionFailed); c != nil {
		return categories[c.Reason]
	}
	return generic
}
