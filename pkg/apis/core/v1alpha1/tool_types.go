// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +k8s:supportsSubresource="/status"

// Tool is something that models may call: an HTTP endpoint or an MCP server.
type Tool struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is what is wanted.
	// +required
	Spec ToolSpec `json:"spec"`
	// status is what is observed, written by the server and its controllers.
	// +optional
	Status ToolStatus `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ToolList is a list of tools.
type ToolList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the tools.
	Items []Tool `json:"items"`
}

// BrokeredToolClass says what a tool may do, for runtimes that broker tools.
// +enum
// +k8s:enum
type BrokeredToolClass string

// Classes of tools.
const (
	ToolClassRead         BrokeredToolClass = "read"
	ToolClassWrite        BrokeredToolClass = "write"
	ToolClassCoordination BrokeredToolClass = "coordination"
)

// ToolSpec is what a tool is and how it is called.
type ToolSpec struct {
	// description tells the model what the tool does and when to use it.
	// +required
	// +k8s:required
	// +k8s:maxLength=4096
	Description string `json:"description"`
	// parameters is the JSON Schema of the arguments. Unset means no arguments for an HTTP tool, and the schema that the
	// server offers for a remote MCP tool. If set, a remote MCP tool can be used only while its server offers the same.
	// A strategic merge patch replaces the schema as a whole; a JSON merge patch changes single members.
	// +optional
	// +k8s:optional
	// +k8s:opaqueType
	// +patchStrategy=replace
	Parameters *apiextensionsv1.JSON `json:"parameters,omitempty" patchStrategy:"replace"`
	// brokeredToolClass is read, write or coordination.
	// +optional
	// +k8s:optional
	BrokeredToolClass BrokeredToolClass `json:"brokeredToolClass,omitempty"`
	// http is the endpoint of the tool. For an MCP tool it holds the headers, the timeout and the credential of requests,
	// without url.
	// +optional
	// +k8s:optional
	HTTP *ToolHTTP `json:"http,omitempty"`
	// mcp calls the tool by the Model Context Protocol.
	// +optional
	// +k8s:optional
	MCP *ToolMCP `json:"mcp,omitempty"`
}

// ToolMethod is the HTTP method of a call.
// +enum
// +k8s:enum
type ToolMethod string

// Methods.
const (
	ToolGet    ToolMethod = "GET"
	ToolPost   ToolMethod = "POST"
	ToolPut    ToolMethod = "PUT"
	ToolPatch  ToolMethod = "PATCH"
	ToolDelete ToolMethod = "DELETE"
)

// ToolAuthInject says where the credential of a call goes.
// +enum
// +k8s:enum
type ToolAuthInject string

// Places of a credential.
const (
	// AuthInjectHeader sends "Authorization: Bearer <token>".
	AuthInjectHeader ToolAuthInject = "header"
	// AuthInjectBody puts the token into the JSON body, at authBodyKey.
	AuthInjectBody ToolAuthInject = "body"
)

// ToolHTTP is how an HTTP tool is called.
type ToolHTTP struct {
	// url is the address, http or https; only an MCP tool may leave it out.
	// +optional
	// +k8s:optional
	// +k8s:maxBytes=2048
	URL string `json:"url,omitempty"`
	// method is GET, POST, PUT, PATCH or DELETE.
	// +optional
	// +default="POST"
	// +k8s:optional
	Method ToolMethod `json:"method,omitempty"`
	// headers are sent with each call. Names have at most 128 bytes, values 1024, all together 4096.
	// +optional
	// +k8s:optional
	Headers map[string]string `json:"headers,omitempty"`
	// timeout limits one call. It must be positive.
	// +optional
	// +default="30s"
	// +k8s:optional
	Timeout *Duration `json:"timeout,omitempty"`
	// authSecretRef is the Secret key with the credential; it cannot be set together with outboundAccessPolicyRef.
	// +optional
	// +k8s:optional
	AuthSecretRef *KeyReference `json:"authSecretRef,omitempty"`
	// outboundAccessPolicyRef is the OutboundAccessPolicy that gives the credential.
	// +optional
	// +k8s:optional
	OutboundAccessPolicyRef *LocalReference `json:"outboundAccessPolicyRef,omitempty"`
	// authInject is header or body.
	// +optional
	// +default="header"
	// +k8s:optional
	AuthInject ToolAuthInject `json:"authInject,omitempty"`
	// authBodyKey is the key of the credential in the JSON body, where authInject is body.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=128
	AuthBodyKey string `json:"authBodyKey,omitempty"`
}

// ToolMCP is how a tool of an MCP server is called. Exactly one of workspace,
// substrateActor and remote is set.
type ToolMCP struct {
	// path is the HTTP path of an MCP server in a workspace or an actor. The url of a remote server includes its path.
	// +optional
	// +default="/mcp"
	// +k8s:optional
	// +k8s:maxLength=1024
	Path string `json:"path,omitempty"`
	// workspace runs the MCP server in a sandbox.
	// +optional
	// +k8s:optional
	Workspace *ToolMCPWorkspace `json:"workspace,omitempty"`
	// substrateActor runs the MCP server in an actor.
	// +optional
	// +k8s:optional
	SubstrateActor *ToolSubstrateActor `json:"substrateActor,omitempty"`
	// remote is an MCP server that runs elsewhere.
	// +optional
	// +k8s:optional
	Remote *ToolMCPRemote `json:"remote,omitempty"`
}

// ToolMCPWorkspace runs an MCP server in a sandbox.
type ToolMCPWorkspace struct {
	// classRef is the class of the sandbox.
	// +required
	ClassRef LocalReference `json:"classRef"`
	// port is the port of the MCP server, from 1 to 65535.
	// +required
	// +k8s:required
	// +k8s:minimum=1
	// +k8s:maximum=65535
	Port int32 `json:"port"`
}

// ToolSubstrateActor runs an MCP server in an actor.
type ToolSubstrateActor struct {
	// templateRef is the template of the actor.
	// +required
	TemplateRef NamespacedReference `json:"templateRef"`
	// poolRef is a pool of actors of the same template.
	// +optional
	// +k8s:optional
	PoolRef *NamespacedReference `json:"poolRef,omitempty"`
	// boot starts the actor from scratch on its first use.
	// +optional
	// +k8s:optional
	Boot bool `json:"boot,omitempty"`
}

// ToolMCPRemote is a tool of an MCP server that runs elsewhere.
type ToolMCPRemote struct {
	// url is the address of the MCP server's streamable HTTP endpoint, http or https.
	// +required
	// +k8s:required
	// +k8s:maxBytes=2048
	URL string `json:"url"`
	// toolName is the tool's name at the server; empty means the name of the Tool.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=128
	ToolName string `json:"toolName,omitempty"`
}

// ToolStatus is what is observed of a tool.
type ToolStatus struct {
	// observedGeneration is the generation of the spec that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// available is set when the controller can reach the endpoint.
	// +optional
	Available bool `json:"available,omitempty"`
	// lastCheck is when that was last tried.
	// +optional
	// +k8s:optional
	LastCheck *metav1.Time `json:"lastCheck,omitempty"`
	// error explains why the tool is not available.
	// +optional
	Error string `json:"error,omitempty"`
	// endpoint is the resolved address, without secrets.
	// +optional
	Endpoint string `json:"endpoint,omitempty"`
	// workspace is the sandbox of the MCP server.
	// +optional
	// +k8s:optional
	Workspace *ToolWorkspaceStatus `json:"workspace,omitempty"`
	// actor is the actor of the MCP server.
	// +optional
	// +k8s:optional
	Actor *ToolActorStatus `json:"actor,omitempty"`
	// conditions are the conditions of the object: Available.
	// +optional
	// +k8s:optional
	// +listType=map
	// +listMapKey=type
	// +patchStrategy=merge
	// +patchMergeKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
}

// ToolWorkspaceStatus is the sandbox of an MCP server.
type ToolWorkspaceStatus struct {
	// classRef is the class of the sandbox.
	// +optional
	// +k8s:optional
	// +k8s:opaqueType
	ClassRef *LocalReference `json:"classRef,omitempty"`
	// workspaceRef is the sandbox.
	// +optional
	// +k8s:optional
	// +k8s:opaqueType
	WorkspaceRef *NamespacedReference `json:"workspaceRef,omitempty"`
	// state is the provider's word for the state of the sandbox.
	// +optional
	State string `json:"state,omitempty"`
	// conditions are the conditions of the object: those of the sandbox.
	// +optional
	// +k8s:optional
	// +listType=map
	// +listMapKey=type
	// +patchStrategy=merge
	// +patchMergeKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
}

// ToolActorStatus is the actor of an MCP server.
type ToolActorStatus struct {
	// provider provides the actor.
	// +optional
	Provider string `json:"provider,omitempty"`
	// actorID identifies the actor.
	// +optional
	ActorID string `json:"actorID,omitempty"`
	// routeHost is the host that calls are routed by.
	// +optional
	RouteHost string `json:"routeHost,omitempty"`
	// templateRef is the resolved template.
	// +optional
	// +k8s:optional
	// +k8s:opaqueType
	TemplateRef *NamespacedReference `json:"templateRef,omitempty"`
	// poolRef is the pool of the actor.
	// +optional
	// +k8s:optional
	// +k8s:opaqueType
	PoolRef *NamespacedReference `json:"poolRef,omitempty"`
}
