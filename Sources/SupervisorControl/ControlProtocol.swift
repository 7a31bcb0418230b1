import FoundationEssentials
package import PodcastModel

/// A request to the supervisor; see `protocols/supervisor.md`.
package struct ControlRequest: Sendable, Hashable, Codable {
    /// The operation: `ps`, `ready`, `restart`, `resetFailed`, `logs`, `down`. Others are refused.
    package var op: String
    /// The service without its prefix, if the operation needs one.
    package var service: String?
    /// For `logs`: the number of last lines.
    package var lines: Int?
    /// For `logs`: whether new lines follow.
    package var follow: Bool?

    package init(_ op: String, service: String? = nil, lines: Int? = nil, follow: Bool? = nil) {
        (self.op, self.service, self.lines, self.follow) = (op, service, lines, follow)
    }
}

package struct ControlReply: Sendable, Hashable, Codable {
    package var error: ControlError?
    /// A sentence with the outcome.
    package var message: String?
    /// For `ps`: the services, followed by the supervisor.
    package var services: [ServiceReport]?
    /// For `logs`: lines of JSON.
    package var lines: [String]?

    package init(
        error: ControlError? = nil, message: String? = nil, services: [ServiceReport]? = nil, lines: [String]? = nil
    ) {
        (self.error, self.message, self.services, self.lines) = (error, message, services, lines)
    }
}

package struct ControlError: Sendable, Hashable, Codable {
    package var code: String
    package var message: String
    package var retry: Bool

    package init(_ failure: Failure) { (code, message, retry) = (failure.code, failure.message, failure.retry) }

    package var failure: Failure { Failure(code: code, message: message, retry: retry) }
}

/// A report on a service for `ps`; values are nil if there is no process.
package struct ServiceReport: Sendable, Hashable, Codable {
    /// The name without the prefix `lockstep-`.
    package var name: String
    /// The raw value of a `ServiceCondition`.
    package var state: String
    package var pid: Int32?
    package var restarts = 0
    /// The seconds since the start of its process.
    package var uptime: Double?
    /// The proportional set size in bytes.
    package var pss: Int?
    /// The processor time in seconds.
    package var cpu: Double?
    /// The number of bytes that its process caused to be written to disks.
    package var written: Int?
    package var status: String?
    /// A description of how and why its last process ended.
    package var lastEnd: String?
    /// The seconds until the next retry.
    package var nextTry: Double?
    package var warning: String?
    /// The path of its newest crash report.
    package var crashReport: String?

    package init(name: String, state: String, pid: Int32?) { (self.name, self.state, self.pid) = (name, state, pid) }
}

/// Encodes and decodes the lines of the control socket, which are JSON.
package enum ControlCoding {
    package static func line(_ value: some Encodable) -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        guard let data = try? encoder.encode(value) else { return Array("{}\n".utf8) }
        return Array(data) + [UInt8(ascii: "\n")]
    }

    package static func request(_ line: [UInt8]) throws(Failure) -> ControlRequest {
        do { return try JSONDecoder().decode(ControlRequest.self, from: Data(line)) } catch {
            throw Failure(.malformed, "The line isn’t a request; a JSON object with \"op\" was expected.")
        }
    }

    package static func reply(_ line: [UInt8]) throws(Failure) -> ControlReply {
        do { return try JSONDecoder().decode(ControlReply.self, from: Data(line)) } catch {
            throw Failure(.malformed, "The supervisor’s answer can’t be read.")
        }
    }
}
