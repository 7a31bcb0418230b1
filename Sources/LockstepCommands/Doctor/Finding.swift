import LockstepClient

/// The result of one check of `doctor`.
struct Finding: Sendable, Hashable {
    /// How serious it is.
    enum Level: String, Sendable {
        /// Everything works as it should.
        case ok
        /// It works, but somebody should look at it.
        case warning
        /// Something doesn’t work.
        case fault
    }

    /// The name of the check, in a word.
    var name: String
    /// How serious it is.
    var level: Level
    /// What was found.
    var message: String
    /// Advice; nil: nothing is to be done.
    var advice: String?
    /// A word for what other checks can find, too; nil: the message stands for it.
    var subject: String?

    /// The subject of everything that says that the disk is full.
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

    /// The finding with the commands in it completed.
    func completed(by advice: AdvisedCommands) -> Finding {
        var finding = self
        finding.message = advice.completed(message)
        finding.advice = self.advice.map(advice.completed)
        return finding
    }

    fileprivate var identity: String { "\(level) \(subject ?? message)" }

    /// For people: what was found, and below it what to do.
    var lines: [String] {
        let level = level.rawValue + String(repeating: " ", count: 8 - level.rawValue.count)
        return ["\(level) \(name): \(DisplayText.sanitised(message))"]
            + (advice.map { ["         do: \(DisplayText.sanitised($0))"] } ?? [])
    }
}

extension [Finding] {
    /// Each fault once: what a later check found again is left out.
    var withoutRepetitions: [Finding] {
        var known: Set<String> = []
        // Where the folders can’t be used, nothing can be heard from a fleet in them.
        let hasFolders = !contains { $0.name == "folders" && $0.level == .fault }
        return filter { finding in
            guard finding.level == .fault, finding.name == "fleet", !hasFolders else {
                return finding.level == .ok || known.insert(finding.identity).inserted
            }
            return false
        }
    }
}
