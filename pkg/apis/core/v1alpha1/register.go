// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the API group of all kinds.
const GroupName = "core.platform.ai"

// SchemeGroupVersion is the group and version of this package.
var SchemeGroupVersion = schema.GroupVersion{Group: GroupName, Version: "v1alpha1"}

var (
	schemeBuilder = runtime.NewSchemeBuilder(addKnownTypes, RegisterDefaults)
	// localSchemeBuilder is where generated code adds validation.
	localSchemeBuilder = &schemeBuilder
	// AddToScheme adds the types of this package, with their defaults and
	// declarative validation, to a scheme.
	AddToScheme = schemeBuilder.AddToScheme
)

// Resource qualifies a resource name with the group.
func Resource(resource string) schema.GroupResource {
	return SchemeGroupVersion.WithResource(resource).GroupResource()
}

// Plural returns the resource of a kind. The guess of apimachinery does not know that a y stays after a vowel.
func Plural(kind string) string {
	if strings.HasSuffix(kind, "ay") {
		return strings.ToLower(kind) + "s"
	}
	guess, _ := meta.UnsafeGuessKindToResource(SchemeGroupVersion.WithKind(kind))
	return guess.Resource
}

// RESTObject is a kind whose objects REST clients see as they are. It has rows in the REST paths because it says so.
type RESTObject interface {
	runtime.Object
	// RESTPath returns the path of the objects below /api/v1, and whether REST clients write them.
	RESTPath() (path string, written bool)
}

// KnownTypes lists one empty object of each kind of this package.
func KnownTypes() []runtime.Object {
	return []runtime.Object{
		&Task{}, &TaskList{},
		&Agent{}, &AgentList{},
		&Provider{}, &ProviderList{},
		&Tool{}, &ToolList{},
		&CatalogTool{}, &CatalogToolList{},
		&Skill{}, &SkillList{},
		&Budget{}, &BudgetList{},
		&RuntimePool{}, &RuntimePoolList{}, &AgentRuntime{}, &AgentRuntimeList{},
		&Session{}, &SessionList{},
		&Memory{}, &MemoryList{}, &MemoryChange{}, &MemorySearch{},
		&MemoryProposal{}, &MemoryProposalList{}, &MemoryProposalReview{}, &MemoryProposalApplication{}, &MemoryProposalSearch{},
		&TranscriptSearch{},
		&UsageReport{}, &UsageLink{}, &UsageLinkPage{},
		&UsageMeasurement{}, &UsageMeasurementList{},
		&ExecutionEvent{}, &ExecutionEventList{},
		&ExecutionEventPage{}, &ExecutionEventCounts{},
		&Approval{}, &ApprovalList{}, &ApprovalDecision{},
		&SessionTranscript{}, &ToolCall{}, &Chat{}, &ChatConfig{},
		&TaskQuery{},
		&CodeHostDelivery{}, &CodeHostDeliveryList{},
		&GatewayClass{}, &GatewayClassList{}, &Gateway{}, &GatewayList{}, &GatewayBinding{}, &GatewayBindingList{},
		&GatewayIdentity{}, &GatewayIdentityList{}, &GatewayEvent{}, &GatewayEventList{}, &GatewayDelivery{}, &GatewayDeliveryList{},
		&GatewayProbe{}, &GatewayRecordQuery{},
		&ConnectorProvider{}, &ConnectorProviderList{}, &Connection{}, &ConnectionList{}, &ConnectionAuthorization{}, &ConnectionCompletion{}, &ToolEffect{}, &ToolEffectList{},
		&RepositoryMonitor{}, &RepositoryMonitorList{}, &MonitorRunRequest{}, &MonitorCommandRequest{}, &MonitorCodeHostCall{},
		&MonitorRun{}, &MonitorRunList{}, &MonitorItem{}, &MonitorItemList{}, &MonitorCommand{}, &MonitorCommandList{},
		&MonitorWorkAction{}, &MonitorWorkActionList{}, &MonitorMutation{}, &MonitorMutationList{},
		&TaskCancellation{}, &TaskDetachment{}, &TaskFork{}, &TaskTrace{}, &TaskResult{}, &TaskArtifactList{}, &TaskPlan{}, &TaskMessage{}, &TaskReply{}, &TaskInbox{}, &TaskCodeHostCall{}, &TaskConnectorCall{}, &TaskCallList{}, &TaskRecording{}, &RequestRecording{},
	}
}

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(SchemeGroupVersion, KnownTypes()...)
	metav1.AddToGroupVersion(scheme, SchemeGroupVersion)
	return nil
}
