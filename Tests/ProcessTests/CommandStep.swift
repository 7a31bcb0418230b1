import Testing

/// A command line, its exit status, and the start of its output.
struct CommandStep: Sendable {
    var command: String
    var status: Int32
    var words: String

    /// The command’s words are separated by spaces; `_` is a space within a word.
    init(_ command: String, _ status: Int32, _ words: String) {
        self.command = command
        self.status = status
        self.words = words
    }
}

extension ProcessFleet {
    /// Runs command lines in order and checks the status and output of each.
    func run(_ steps: [CommandStep]) async throws {
        for step in steps {
            let words = step.command.split(separator: " ").map { String($0.map { $0 == "_" ? " " : $0 }) }
            let outcome = try await lockstep(words)
            let output = outcome.status == 0 ? outcome.output : outcome.errors
            #expect(outcome.status == step.status, "\(step.command): \(outcome.output)\(outcome.errors)")
            #expect(output.hasPrefix(step.words), "\(step.command): \(outcome.output)\(outcome.errors)")
        }
    }
}
