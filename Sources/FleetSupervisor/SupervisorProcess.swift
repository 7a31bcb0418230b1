import BusKit
import CProcess
import LibC
import PodcastModel
import SupervisorControl

/// Runs the process `lockstep-supervisor`.
package enum SupervisorProcess {
    /// Runs the fleet until it is stopped by `lockstep down` or a signal; then the process ends.
    package static func run() -> Never {
        umask(0o077)
        let isDetached = CommandLine.arguments.dropFirst().first == SupervisorLauncher.detachedArgument
        do {
            let environment = ProcessEnvironment.current
            var configuration = SupervisorConfiguration(
                home: try LockstepHome.current(),
                programDirectory: SupervisorLauncher.programDirectory(environment), environment: environment)
            configuration.signals = lockstep_stop_signals()
            configuration.printsLog = !isDetached
            let loop = try SupervisorLoop(configuration)
            if isDetached { redirectOutput(configuration.home) }
            loop.run()
            exit(0)
        } catch {
            let line = Array("\(error.message)\n".utf8)
            _ = write(STDERR_FILENO, line, line.count)
            exit(error.known == .alreadyRunning ? SupervisorLauncher.alreadyRunningCode : 78)
        }
    }

    /// Redirects the runtime’s output to a file. Closing the former output notifies the process that started this one.
    private static func redirectOutput(_ home: LockstepHome) {
        let path = home.logDirectory + "/supervisor.err"
        var file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        if file < 0 { file = open("/dev/null", O_WRONLY | O_CLOEXEC) }
        guard file >= 0 else { return }
        dup2(file, STDOUT_FILENO)
        dup2(file, STDERR_FILENO)
        close(file)
    }
}
