import FleetHome

/// Completes the commands that messages advise with the home that was given on the command line, so that they can be
/// copied: without it they would be about another fleet.
///
/// Services don't know how a client was started, and their messages are for all clients: so it is done where a message is
/// printed, with whatever stands between backticks and begins with `lockstep` and a command.
struct AdvisedCommands: Sendable, Hashable {
    /// ` --home FOLDER`; empty where none was given.
    let option: String

    /// The advice of a client that was given no home.
    static let plain = AdvisedCommands(home: nil)

    /// The advice for a home: an absolute folder.
    init(home: String?) {
        option = home.map { " --home \(ShellText.quoted($0))" } ?? ""
    }

    /// The advice of a command with these options; of a home that can't be found, none.
    init(_ options: GlobalOptions) { self.init(given: options.home) }

    /// The advice about a command line that may not be parsed.
    init(arguments: [String]) {
        let inOne = arguments.first { $0.hasPrefix("--home=") }.map { String($0.dropFirst("--home=".count)) }
        let behind = arguments.firstIndex(of: "--home").flatMap { arguments.dropFirst($0 + 1).first }
        self.init(given: inOne ?? behind)
    }

    private init(given: String?) {
        var environment = ProcessEnvironment.current
        environment["LOCKSTEP_HOME"] = given
        let home = given == nil ? nil : try? LockstepHome.find(environment)
        self.init(home: home?.environment["LOCKSTEP_HOME"])
    }

    /// A message with its commands completed.
    func completed(_ text: String) -> String {
        guard !option.isEmpty, text.contains("`lockstep ") else { return text }
        // What stands between backticks is every other part.
        let parts = text.split(separator: "`", omittingEmptySubsequences: false)
        return parts.enumerated().map { index, part in
            let isCommand = index % 2 == 1 && index < parts.count - 1 && part.hasPrefix("lockstep ")
            return isCommand && !part.contains("--home") ? part + option : String(part)
        }.joined(separator: "`")
    }
}
