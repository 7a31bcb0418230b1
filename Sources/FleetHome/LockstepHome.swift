import LibC
package import PodcastModel

/// The folders of a fleet: under `LOCKSTEP_HOME` alone, or in the XDG base directories.
///
/// Every process and client of one user finds the same folders, with and without a login session.
package struct LockstepHome: Sendable, Hashable {
    /// The folder of `config.yaml`.
    package let configurationDirectory: String
    /// The folder for the database, downloads and backups.
    package let dataDirectory: String
    /// The folder for logs, crash reports, generations and the last epoch.
    package let stateDirectory: String
    /// The folder for sockets and locks; mode 0700. A running fleet may have another one: see `ofRunningFleet()`.
    package private(set) var runDirectory: String
    /// The environment that gives a child the same folders.
    package let environment: [String: String]

    /// Determines the folders; creates nothing.
    ///
    /// - Parameter directoryExists: whether a folder exists and is writable, for finding `/run/user/UID`.
    /// - Throws: `badConfiguration` if `LOCKSTEP_HOME` is empty, or neither it nor `HOME` is set.
    package init(
        environment: [String: String], userID: UInt32, workingDirectory: String,
        directoryExists: (String) -> Bool
    ) throws(Failure) {
        func folder(_ name: String) -> String? {
            guard let path = environment[name], !path.isEmpty else { return nil }
            return path
        }
        if let given = environment["LOCKSTEP_HOME"] {
            // A script’s unset variable gives an empty value, which must not select the user’s own library.
            guard !given.isEmpty else {
                throw Failure(
                    .badConfiguration,
                    "The home is empty: set LOCKSTEP_HOME (or --home) to the folder for Lockstep’s files, or omit it."
                )
            }
            let home = Self.normalised(given.hasPrefix("/") ? given : workingDirectory + "/" + given)
            configurationDirectory = home
            dataDirectory = home + "/data"
            stateDirectory = home + "/state"
            runDirectory = home + "/run"
            self.environment = ["LOCKSTEP_HOME": home]
            return
        }
        // The XDG specification requires relative paths to be ignored.
        func base(_ name: String, else rest: String) throws(Failure) -> String {
            if let path = folder(name), path.hasPrefix("/") { return Self.normalised(path) }
            guard let home = folder("HOME"), home.hasPrefix("/") else {
                throw Failure(
                    .badConfiguration,
                    "There is no home folder: set LOCKSTEP_HOME to the folder for Lockstep’s files.")
            }
            return Self.normalised(home + "/" + rest)
        }
        configurationDirectory = try base("XDG_CONFIG_HOME", else: ".config") + "/lockstep"
        dataDirectory = try base("XDG_DATA_HOME", else: ".local/share") + "/lockstep"
        stateDirectory = try base("XDG_STATE_HOME", else: ".local/state") + "/lockstep"
        if let runtime = folder("XDG_RUNTIME_DIR"), runtime.hasPrefix("/"), directoryExists(runtime) {
            runDirectory = Self.normalised(runtime) + "/lockstep"
        } else if directoryExists("/run/user/\(userID)") {
            runDirectory = "/run/user/\(userID)/lockstep"
        } else {
            runDirectory = stateDirectory + "/run"
        }
        self.environment = environment.filter { entry in
            ["HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR"].contains(entry.key)
        }
    }

    /// The folders of this process.
    package static func current(_ environment: [String: String] = ProcessEnvironment.current) throws(Failure)
        -> LockstepHome
    {
        try LockstepHome(environment: environment, userID: geteuid(), workingDirectory: workingDirectory) {
            access($0, W_OK | X_OK) == 0
        }
    }

    /// Returns the home that an environment names, with the run directory of the fleet that runs on its data, if any.
    package static func find(_ environment: [String: String]) throws(Failure) -> LockstepHome {
        var environment = environment
        // The shell doesn’t expand `--home=~/podcasts`.
        if let given = environment["LOCKSTEP_HOME"], let own = environment["HOME"],
            given == "~" || given.hasPrefix("~/")
        {
            environment["LOCKSTEP_HOME"] = own + given.dropFirst()
        }
        return try current(environment).ofRunningFleet()
    }

    /// The same home with the run directory of the fleet that runs on its data; this home if none runs.
    ///
    /// The run directory of the environment may differ between a login, cron, `su` and a container, but a fleet has only one,
    /// which the lock beside the data names.
    package func ofRunningFleet() -> LockstepHome {
        guard FileLock.isHeld(fleetLock), let folder = FileLock.note(of: fleetLock), folder.hasPrefix("/") else {
            return self
        }
        var home = self
        home.runDirectory = folder
        return home
    }

    // MARK: - Files

    package var configurationFile: String { configurationDirectory + "/config.yaml" }
    package var database: String { dataDirectory + "/lockstep.sqlite" }
    /// The folder for backups of the database.
    package var backupDirectory: String { dataDirectory + "/backups" }
    package var downloadDirectory: String { dataDirectory + "/downloads" }
    package var logDirectory: String { stateDirectory + "/logs" }
    package var crashDirectory: String { stateDirectory + "/crashes" }
    package func runFile(_ name: String) -> String { runDirectory + "/" + name }
    /// A file that outlives the process, such as a service’s last generation.
    package func stateFile(_ name: String) -> String { stateDirectory + "/" + name }
    /// The lock that a fleet’s supervisor holds. It is stored beside the database, because two fleets must not share
    /// one database, even with different run directories; it contains the fleet’s run directory.
    package var fleetLock: String { dataDirectory + "/supervisor.lock" }
    /// The lock of earlier versions. A supervisor holds it too, so that fleets of both versions exclude each other.
    package var earlierFleetLock: String { runFile("supervisor.lock") }
    package var controlSocket: String { runFile("control.sock") }
    /// The name of the socket on which the bus serves clients.
    package static let clientSocket = "cli.sock"

    /// Throws `badConfiguration` for a run directory whose sockets’ paths are too long for the system.
    package func checkSocketPaths() throws(Failure) {
        // The path includes a terminating zero byte, and this is the longest name of a socket.
        let limit = MemoryLayout.size(ofValue: sockaddr_un().sun_path) - 1
        let length = controlSocket.utf8.count
        guard length <= limit else {
            throw Failure(
                .badConfiguration,
                "The path \(controlSocket) is \(length) bytes long, but a socket’s path may have at most \(limit). Set LOCKSTEP_HOME to a folder with a shorter path."
            )
        }
    }

    private static var workingDirectory: String {
        guard let buffer = getcwd(nil, 0) else { return "/" }
        defer { free(buffer) }
        return String(cString: buffer)
    }

    /// The path without double slashes, `.` and `..`.
    private static func normalised(_ path: String) -> String {
        var parts: [Substring] = []
        for part in path.split(separator: "/") where part != "." {
            if part == ".." { _ = parts.popLast() } else { parts.append(part) }
        }
        return "/" + parts.joined(separator: "/")
    }
}

package enum ProcessEnvironment {
    package static var current: [String: String] {
        var entry = environ
        var texts: [String] = []
        while let text = entry.pointee {
            texts.append(String(cString: text))
            entry += 1
        }
        return variables(texts)
    }

    /// Parses the variables in texts such as `HOME=/root`.
    package static func variables(_ texts: some Sequence<String>) -> [String: String] {
        var variables: [String: String] = [:]
        for text in texts {
            guard let end = text.utf8.firstIndex(of: UInt8(ascii: "=")) else { continue }
            variables[String(text[..<end])] = String(text[text.utf8.index(after: end)...])
        }
        return variables
    }
}
