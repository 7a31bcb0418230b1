import FleetHome
import PodcastModel

/// Adds the home of the command line to the commands in messages, so that users can copy them. It is applied when
/// a message is printed, since services don’t get the client’s options: between backticks, if `lockstep` is followed
/// by a command.
struct AdvisedCommands: Sendable, Hashable {
    /// The text ` --home FOLDER`; empty if no home was specified.
    let option: String

    static let plain = AdvisedCommands(home: nil)

    private let folder: String?

    init(home: String?) {
        folder = home
        option = home.map { " --home \(ShellText.quoted($0))" } ?? ""
    }

    init(_ options: GlobalOptions) { self.init(given: options.home) }

    /// Finds the home in a command line, even if the parser refuses the rest.
    init(arguments: [String]) {
        let inOne = arguments.first { $0.hasPrefix("--home=") }.map { String($0.dropFirst("--home=".count)) }
        let behind = arguments.firstIndex(of: "--home").flatMap { arguments.dropFirst($0 + 1).first }
        self.init(given: inOne ?? behind)
    }

    /// The home of the command line, else of the environment.
    func findHome() throws(Failure) -> LockstepHome {
        var environment = ProcessEnvironment.current
        if let folder { environment["LOCKSTEP_HOME"] = folder }
        return try LockstepHome.find(environment)
    }

    private init(given: String?) {
        var environment = ProcessEnvironment.current
        environment["LOCKSTEP_HOME"] = given
        let home = given == nil ? nil : try? LockstepHome.find(environment)
        self.init(home: home?.environment["LOCKSTEP_HOME"])
    }

    func completed(_ text: String) -> String {
        guard !option.isEmpty, text.contains("`lockstep ") else { return text }
        // The parts with odd indices are between backticks.
        let parts = text.split(separator: "`", omittingEmptySubsequences: false)
        return parts.enumerated().map { index, part in
            let isCommand = index % 2 == 1 && index < parts.count - 1 && part.hasPrefix("lockstep ")
            guard isCommand, !part.contains("--home") else { return String(part) }
            // After `--`, it would be text.
            let end = part.firstRange(of: " -- ")?.lowerBound ?? part.endIndex
            return part[..<end] + option + part[end...]
        }.joined(separator: "`")
    }
}
