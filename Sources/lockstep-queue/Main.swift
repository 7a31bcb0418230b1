import BusKit
import QueueService

@main
struct Main {
    static func main() async {
        await ServiceProcess.run(.queue) { QueueShell($0) }
    }
}
