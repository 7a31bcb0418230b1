import FoundationEssentials
public import PodcastModel

/// A line to the supervisor; see `protocols/supervisor.md`.
public struct ControlRequest: Sendable, Hashable, Codable {
    /// What is asked for: `ps`, `ready`, `restart`, `resetFailed`, `logs`, `down`. Open: others are refused.
    public var op: String
    /// The service, without its prefix, where one is meant.
    public var service: String?
    /// For `logs`: how many of the last lines.
    public var lines: Int?
    /// For `logs`: whether lines are sent on as they come.
    public var follow: Bool?

    /// A request.
    public init(_ op: String, service: String? = nil, lines: Int? = nil, follow: Bool? = nil) {
        self.op = op
        self.service = service
        self.lines = lines
        self.follow = follow
    }
}

/// A line from the supervisor.
public struct ControlReply: Sendable, Hashable, Codable {
    /// Why it was refused; nil for success.
    public var error: ControlError?
    /// What was done, in a sentence.
    public var message: String?
    /// For `ps`: the services, and at last the supervisor itself.
    public var services: [ServiceReport]?
    /// For `logs`: lines of JSON.
    public var lines: [String]?

    /// A success, or with `error` a refusal.
    package init(
        error: ControlError? = nil, message: String? = nil, services: [ServiceReport]? = nil, lines: [String]? = nil
    ) {
        (self.error, self.message, self.services, self.lines) = (error, message, services, lines)
    }
}

/// A refusal.
public struct ControlError: Sendable, Hashable, Codable {
    /// A stable word.
    public var code: String
    /// A sentence.
    public var message: String
    /// Whether the same may succeed later.
    public var retry: Bool

    package init(_ failure: Failure) { (code, message, retry) = (failure.code, failure.message, failure.retry) }

    /// The refusal as it is thrown.
    public var failure: Failure { Failure(code: code, message: message, retry: retry) }
}

/// A service as `ps` shows it.
public struct ServiceReport: Sendable, Hashable, Codable {
    /// Without the prefix `lockstep-`.
    public var name: String
    /// A word of `ServiceCondition`.
    public var state: String
    /// Its process; nil when there is none.
    public var pid: Int32?
    /// How often it was started again.
    public var restarts: Int
    /// Seconds since its process was started; nil without one.
    public var uptime: Double?
    /// The proportional set size in bytes; nil without a process.
    public var pss: Int?
    /// The processor time of the process in seconds.
    public var cpu: Double?
    /// What it says of itself.
    public var status: String?
    /// How its last process ended, and why.
    public var lastEnd: String?
    /// Seconds until it is tried again.
    public var nextTry: Double?
    /// Something to look into.
    public var warning: String?
    /// The newest crash report's path.
    public var crashReport: String?

    /// A report of these parts.
    package init(
        name: String, state: String, pid: Int32?, restarts: Int, uptime: Double?, pss: Int?, cpu: Double?,
        status: String? = nil, lastEnd: String? = nil, nextTry: Double? = nil, warning: String? = nil,
        crashReport: String?
    ) {
        (self.name, self.state, self.pid, self.restarts) = (name, state, pid, restarts)
        (self.uptime, self.pss, self.cpu, self.status) = (uptime, pss, cpu, status)
        (self.lastEnd, self.nextTry, self.warning, self.crashReport) = (lastEnd, nextTry, warning, crashReport)
    }
}

extension Duration {
    /// In seconds.
    package var inSeconds: Double { Double(components.seconds) + Double(components.attoseconds) / 1e18 }
}

/// Lines of JSON.
package enum ControlCoding {
    package static func line(_ value: some Encodable) -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        guard let data = try? encoder.encode(value) else { return Array("{}\n".utf8) }
        return Array(data) + [UInt8(ascii: "\n")]
    }

    package static func request(_ line: [UInt8]) throws(Failure) -> ControlRequest {
        do { return try JSONDecoder().decode(ControlRequest.self, from: Data(line)) } catch {
            throw Failure(.malformed, "That isn’t a request: a JSON object with \"op\" was expected.")
        }
    }

    package static func reply(_ line: [UInt8]) throws(Failure) -> ControlReply {
        do { return try JSONDecoder().decode(ControlReply.self, from: Data(line)) } catch {
            throw Failure(.malformed, "The supervisor’s answer cannot be read.")
        }
    }
}
