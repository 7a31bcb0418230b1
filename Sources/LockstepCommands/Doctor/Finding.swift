import LockstepClient

/// The result of one check of `doctor`.
struct Finding: Sendable, Hashable {
    enum Level: String, Sendable {
        case ok
        /// The checked part works, but needs attention.
        case warning
        /// The checked part doesn’t work.
        case fault
    }

    let name: String
    let level: Level
    var message: String
    var advice: String?
    /// A name for faults that several checks find; nil if the message identifies the fault.
    var subject: String?

    static let fullDisk = "full disk"

    static func ok(_ name: String, _ message: String) -> Finding {
        Finding(name: name, level: .ok, message: message)
    }

    static func warning(_ name: String, _ message: String, do advice: String) -> Finding {
        Finding(name: name, level: .warning, message: message, advice: advice)
    }

    static func fault(_ name: String, _ message: String, do advice: String) -> Finding {
        Finding(name: name, level: .fault, message: message, advice: advice)
    }

    var json: JSONValue {
        .object([
            "name": .string(name), "ok": .bool(level == .ok), "level": .string(level.rawValue),
            "message": .string(message), "advice": advice.map { .string($0) } ?? .null,
        ])
    }

    func completed(by advice: AdvisedCommands) -> Finding {
        var finding = self
        finding.message = advice.completed(message)
        finding.advice = self.advice.map(advice.completed)
        return finding
    }

    var lines: [String] {
        let level = level.rawValue + String(repeating: " ", count: 8 - level.rawValue.count)
        return ["\(level) \(name): \(DisplayText.sanitised(message))"]
            + (advice.map { ["         do: \(DisplayText.sanitised($0))"] } ?? [])
    }
}

extension [Finding] {
    /// Returns each fault once, without repetitions by later checks.
    var withoutRepetitions: [Finding] {
        var known: Set<String> = []
        // If the folders can’t be used, a fleet in them can’t be reached.
        let hasFolders = !contains { $0.name == "folders" && $0.level == .fault }
        return filter { finding in
            guard finding.level == .fault, finding.name == "fleet", !hasFolders else {
                return finding.level == .ok
                    || known.insert("\(finding.level) \(finding.subject ?? finding.message)").inserted
            }
            return false
        }
    }
}
