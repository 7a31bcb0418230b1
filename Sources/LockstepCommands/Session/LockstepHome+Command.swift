import BusKit
import LibC
import PodcastModel

extension LockstepHome {
    /// The folders that an environment leads to, with the run directory of the fleet that runs there.
    ///
    /// - Throws: `badConfiguration` when there is no home.
    static func find(_ environment: [String: String]) throws(Failure) -> LockstepHome {
        let directory = getcwd(nil, 0)
        defer { free(directory) }
        var environment = environment
        // `--home=~/podcasts`: the shell leaves it as it is.
        if let given = environment["LOCKSTEP_HOME"], let own = environment["HOME"],
            given == "~" || given.hasPrefix("~/")
        {
            environment["LOCKSTEP_HOME"] = own + given.dropFirst()
        }
        return try LockstepHome(
            environment: environment, userID: geteuid(), workingDirectory: directory.map { String(cString: $0) } ?? "/"
        ) { access($0, W_OK | X_OK) == 0 }.ofRunningFleet()
    }
}

extension CommandContext {
    /// Leads the program that this process becomes to the same folders and settings.
    func exportEnvironment() {
        for variables in [settings.serviceEnvironment, home.environment] {
            for (name, value) in variables { setenv(name, value, 1) }
        }
    }
}
