import BusBroker
import ProcessKit

@main
struct Main {
    static func main() async {
        await ServiceProcess.run(BusService.name) { BusService($0) }
    }
}
