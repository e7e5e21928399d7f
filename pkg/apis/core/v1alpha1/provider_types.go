// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +k8s:supportsSubresource="/status"

// Provider is an account at a model vendor, or at any server that speaks the vendor's protocol.
type Provider struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is what is wanted.
	// +required
	Spec ProviderSpec `json:"spec"`
	// status is what is observed, written by the server and its controllers.
	// +optional
	Status ProviderStatus `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ProviderList is a list of providers.
type ProviderList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the providers.
	Items []Provider `json:"items"`
}

// ProviderSpec is how a vendor is reached.
type ProviderSpec struct {
	// type is the wire protocol: anthropic, openai or azure-openai.
	// +required
	// +k8s:required
	Type ProviderType `json:"type"`
	// secretRef is the Secret key with the API key.
	// +required
	SecretRef ProviderSecretReference `json:"secretRef"`
	// baseURL is the address of the server; empty means the vendor's own. azure-openai needs it.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=2048
	BaseURL string `json:"baseURL,omitempty"`
	// defaultModel is the model where neither task nor agent names one.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=256
	DefaultModel string `json:"defaultModel,omitempty"`
	// probe asks the server for its models every few minutes, with the key of secretRef. The condition Ready then says
	// whether the server was reached and accepts the key. Listing models costs nothing at the known vendors.
	// +optional
	// +k8s:optional
	Probe bool `json:"probe,omitempty"`
	// rateLimit limits the requests of all tasks that use this provider.
	// +optional
	// +k8s:optional
	RateLimit *RateLimit `json:"rateLimit,omitempty"`
	// drainSeconds is how long, in seconds, an answer of this provider is read on after whoever asked for it in a chat or through
	// /openai/v1 and /anthropic/v1 has left. The vendor goes on writing until then, which costs, and its count of the tokens comes
	// last, so an answer that is cut has a partial usage. The default is the server's flag --model-drain-time; 0 cuts at once.
	// +optional
	// +k8s:optional
	// +k8s:minimum=0
	// +k8s:maximum=600
	DrainSeconds *int32 `json:"drainSeconds,omitempty"`
	// azure is needed by type azure-openai and refused for the others.
	// +optional
	// +k8s:optional
	Azure *AzureProvider `json:"azure,omitempty"`
	// prices are what the vendor charges. Reports and budgets use the price that was in force when usage was observed.
	// Earlier prices stay in the list, so that earlier usage keeps its cost.
	// +optional
	// +k8s:optional
	// +k8s:maxItems=512
	// +listType=map
	// +listMapKey=model
	// +listMapKey=effectiveFrom
	Prices []ProviderPrice `json:"prices,omitempty"`
}

// AnyModel is the model of a price that applies to all models without a price of their own.
const AnyModel = "*"

// ProviderPrice is what a vendor charges for a model from a time on, until the next price of the same model applies.
// Prices are decimal numbers for a million tokens, with at most 9 digits before and 6 after the point.
type ProviderPrice struct {
	// model is the model, as requests name it; "*" for all models without a price of their own.
	// +required
	// +k8s:required
	// +k8s:maxLength=256
	Model string `json:"model"`
	// effectiveFrom is when the price applies: a UTC date (2026-01-31) or an RFC 3339 timestamp.
	// +required
	// +k8s:required
	// +k8s:maxLength=64
	EffectiveFrom string `json:"effectiveFrom"`
	// currency is the ISO 4217 code of the currency, such as USD.
	// +required
	// +k8s:required
	// +k8s:maxLength=3
	Currency string `json:"currency"`
	// input is the price of input that no cache supplied or took.
	// +required
	// +k8s:required
	// +k8s:maxLength=16
	Input string `json:"input"`
	// output is the price of output.
	// +required
	// +k8s:required
	// +k8s:maxLength=16
	Output string `json:"output"`
	// cachedInput is the price of input that was read from a cache. The default is the price of input.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=16
	CachedInput string `json:"cachedInput,omitempty"`
	// cacheWriteInput is the price of input that was written to a cache. The default is the price of input.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=16
	CacheWriteInput string `json:"cacheWriteInput,omitempty"`
}

// ProviderSecretReference names the Secret key with a provider's API key.
// Its key has a default, so its fields are owned one by one: owned as a whole, it would differ from each manifest that leaves
// the key out.
type ProviderSecretReference struct {
	// name is the name of a Secret of the same namespace.
	// +required
	// +k8s:required
	// +k8s:format=k8s-long-name
	Name string `json:"name"`
	// key is the key in the Secret's data.
	// +optional
	// +default="api-key"
	// +k8s:optional
	// +k8s:maxLength=253
	Key string `json:"key,omitempty"`
}

// AzureProvider is what only type azure-openai needs.
type AzureProvider struct {
	// deploymentName is the name of the deployment.
	// +required
	// +k8s:required
	// +k8s:maxLength=256
	DeploymentName string `json:"deploymentName"`
	// apiVersion is the version of the service's API.
	// +optional
	// +default="2024-02-15-preview"
	// +k8s:optional
	// +k8s:maxLength=64
	APIVersion string `json:"apiVersion,omitempty"`
}

// ProviderStatus is what is observed of a provider. No request is made to the vendor to find it out; whether its vendor
// answers is known from the requests of runs.
type ProviderStatus struct {
	// observedGeneration is the generation of the spec that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// ready is set when the Secret and its key exist.
	// +optional
	Ready bool `json:"ready,omitempty"`
	// lastValidated is when that was last checked.
	// +optional
	// +k8s:optional
	LastValidated *metav1.Time `json:"lastValidated,omitempty"`
	// message explains ready to people.
	// +optional
	Message string `json:"message,omitempty"`
	// coolDownUntil is until when runs ask this provider after all others that they may use, because requests of a run
	// failed: its vendor refused the key, asked for a pause, failed or could not be reached. Unset if no request failed
	// since the last one that succeeded.
	// +optional
	// +k8s:optional
	CoolDownUntil *metav1.Time `json:"coolDownUntil,omitempty"`
	// conditions are the conditions of the object: Ready, and Available once a run has met a failure.
	// +optional
	// +k8s:optional
	// +listType=map
	// +listMapKey=type
	// +patchStrategy=merge
	// +patchMergeKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
}
