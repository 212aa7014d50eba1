package telemetry

// Names of attributes. Those of HTTP and of the network are stable in OpenTelemetry's semantic conventions; those of
// generative AI are of release 0.1.0 of their own conventions, which no Go package has; benchproxy.* are ours.
const (
	httpMethod         = "http.request.method"
	httpMethodOriginal = "http.request.method_original"
	httpRoute          = "http.route"
	httpStatus         = "http.response.status_code"
	httpRequestSize    = "http.request.body.size"
	httpResponseSize   = "http.response.body.size"
	urlPath            = "url.path"
	urlQuery           = "url.query"
	urlScheme          = "url.scheme"
	urlFull            = "url.full"
	serverAddress      = "server.address"
	serverPort         = "server.port"
	protocolVersion    = "network.protocol.version"
	userAgent          = "user_agent.original"
	errorType          = "error.type"

	aiOperation     = "gen_ai.operation.name"
	aiProvider      = "gen_ai.provider.name"
	aiRequestModel  = "gen_ai.request.model"
	aiResponseModel = "gen_ai.response.model"
	aiResponseID    = "gen_ai.response.id"
	aiStream        = "gen_ai.request.stream"
	aiFinish        = "gen_ai.response.finish_reasons"
	aiFirstChunk    = "gen_ai.response.time_to_first_chunk"
	aiInput         = "gen_ai.usage.input_tokens"
	aiOutput        = "gen_ai.usage.output_tokens"
	aiCacheRead     = "gen_ai.usage.cache_read.input_tokens"
	aiCacheWrite    = "gen_ai.usage.cache_write.input_tokens"
	aiReasoning     = "gen_ai.usage.reasoning.output_tokens"
	aiConversation  = "gen_ai.conversation.id"

	aiMaxTokens        = "gen_ai.request.max_tokens"
	aiTemperature      = "gen_ai.request.temperature"
	aiTopP             = "gen_ai.request.top_p"
	aiTopK             = "gen_ai.request.top_k"
	aiFrequencyPenalty = "gen_ai.request.frequency_penalty"
	aiPresencePenalty  = "gen_ai.request.presence_penalty"
	aiSeed             = "gen_ai.request.seed"
	aiStopSequences    = "gen_ai.request.stop_sequences"
	aiChoices          = "gen_ai.request.choice.count"
	aiReasoningLevel   = "gen_ai.request.reasoning.level"
	aiOutputType       = "gen_ai.output.type"

	aiInputMessages  = "gen_ai.input.messages"
	aiOutputMessages = "gen_ai.output.messages"
	aiSystem         = "gen_ai.system_instructions"
	aiTools          = "gen_ai.tool.definitions"

	ourRecord      = "benchproxy.record.id"
	ourState       = "benchproxy.record.state" // stored, truncated, dropped, off
	ourRun         = "benchproxy.run.id"
	ourRunName     = "benchproxy.run.name"
	ourRunState    = "benchproxy.run.state"
	ourHash        = "benchproxy.request.hash"
	ourMode        = "benchproxy.mode"
	ourUpstream    = "benchproxy.upstream"
	ourBuild       = "benchproxy.engine.build"
	ourCell        = "benchproxy.cell"
	ourCase        = "benchproxy.case"
	ourWave        = "benchproxy.wave"
	ourItem        = "benchproxy.item"
	ourOutcome     = "benchproxy.outcome"
	ourFlags       = "benchproxy.flags"
	ourReplayed    = "benchproxy.replayed.record.id"
	ourTTFT        = "benchproxy.ttft"         // s
	ourTTFA        = "benchproxy.ttfa"         // s
	ourTPOT        = "benchproxy.tpot"         // s
	ourPrefill     = "benchproxy.prefill.rate" // {token}/s
	ourDecode      = "benchproxy.decode.rate"  // {token}/s
	ourChunks      = "benchproxy.chunks"
	ourTokenSource = "benchproxy.token_count.source" // usage, chunks
	ourStored      = "benchproxy.run.stored"
	ourDropped     = "benchproxy.run.dropped"
	ourExchanges   = "benchproxy.exchanges"
	ourMisses      = "benchproxy.replay.misses"
	ourSent        = "benchproxy.response.sent_bytes" // head and framing included
	ourMiss        = "benchproxy.replay.miss"         // why it is one
	ourNearest     = "benchproxy.replay.nearest"      // id of the recorded exchange that is most like it
	ourDiffers     = "benchproxy.replay.differs"      // paths at which it differs from that
)

// Names of events on the client span and of their attributes.
const (
	eventSent        = "benchproxy.request_sent"
	eventHeaders     = "benchproxy.response_headers"
	eventFirstByte   = "benchproxy.first_byte"
	eventFirstToken  = "benchproxy.first_token"
	eventFirstAnswer = "benchproxy.first_answer_token"
	eventLastToken   = "benchproxy.last_token"
	eventFinish      = "benchproxy.finish"
	eventEnd         = "benchproxy.stream_end"
	eventException   = "gen_ai.client.inference.exception"
	eventContent     = "gen_ai.client.inference.operation.details"

	attrElapsed      = "benchproxy.elapsed" // s from the first request byte
	attrKind         = "benchproxy.token.kind"
	attrChunk        = "benchproxy.chunk.index"
	attrFinishReason = "benchproxy.finish_reason"
	attrEnd          = "benchproxy.end" // marker, eof, abort, error
	exceptionType    = "exception.type"
	exceptionMessage = "exception.message"
)

// stateOff and stateDropped are what benchproxy.record.state is beside the states of a record.
const (
	stateOff     = "off"
	stateDropped = "dropped"
)
