import PersistenceService
import ProcessKit

@main
struct Main {
    static func main() async {
        await ServiceProcess.run(PersistenceShell.name) { PersistenceShell($0) }
    }
}
