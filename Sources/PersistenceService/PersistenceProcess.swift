import PodcastModel
import ProcessKit
import WireMessages

/// The database's service as a process.
package enum PersistenceProcess {
    /// Runs until the process is asked to end; exits 78 for a database of a newer version, 70 for other failures.
    package static func run() async {
        await ServiceProcess.run(.persistence) { context in PersistenceShell(context) }
    }
}
