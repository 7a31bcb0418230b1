import FleetHome
import LibC
import PodcastModel

extension CommandContext {
    /// Leads the program that this process becomes to the same folders and settings.
    func exportEnvironment() {
        for variables in [settings.serviceEnvironment, home.environment] {
            for (name, value) in variables { setenv(name, value, 1) }
        }
    }
}
